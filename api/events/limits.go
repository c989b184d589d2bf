package events

import "time"

const (
	// BatchBlocksMax bounds the blocks of one message.
	BatchBlocksMax = 4096
	// QueueBatchesMax and QueueBytesMax bound what the loop has told and has not
	// been encoded yet.
	QueueBatchesMax = 10_000
	QueueBytesMax   = 64 << 20
	// eventBytes is about what an event takes beside its tokens.
	eventBytes = 160

	// SubscribersMax bounds the connections; more are closed at once.
	SubscribersMax = 64
	// TopicsMax bounds the subscriptions of a connection.
	TopicsMax = 256
	// SubscriberMessagesMax and SubscriberBytesMax bound what waits for one
	// subscriber; the messages are shared.
	SubscriberMessagesMax = 10_000
	SubscriberBytesMax    = 16 << 20

	// ReplayMessagesMax and ReplayBytesMax bound what is kept for replays.
	ReplayMessagesMax = 10_000
	ReplayBytesMax    = 64 << 20
	// ReplayersMax bounds the connections to the replay port.
	ReplayersMax = 16

	// HandshakeWait is what a peer has to say hello.
	HandshakeWait = 5 * time.Second
	// WriteWait is how long a peer may read nothing before it loses its
	// connection.
	WriteWait = 30 * time.Second
	// AcceptWait is the pause after a connection could not be accepted: most
	// likely there are too many open files.
	AcceptWait = 100 * time.Millisecond
	// LogEvery is the least time between two lines about dropped messages.
	LogEvery = time.Minute
)
