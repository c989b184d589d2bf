package admin

import "time"

const (
	// RequestBytesMax bounds the body of a request.
	RequestBytesMax = 1 << 20
	// HeaderBytesMax bounds the header of a request.
	HeaderBytesMax = 16 << 10
	// AnswerBytesMax bounds what the client reads of a JSON answer.
	AnswerBytesMax = 64 << 20
	// ConnectionsMax bounds the connections that are open at once.
	ConnectionsMax = 64
	// NameBytesMax bounds an id or a name in a path.
	NameBytesMax = 256
	// AliasesMax bounds the aliases of one model.
	AliasesMax = 64
	// KVTreeRows is the number of prefixes listed unless asked otherwise.
	KVTreeRows = 20
	// KVTreeRowsMax bounds it.
	KVTreeRowsMax = 1000
	// KVHashDigitsMin is the least number of digits that name a block.
	KVHashDigitsMin = 4
	// KVPinMax bounds the time of a pin, KVFlushMax the wait of a flush.
	KVPinMax   = 365 * 24 * time.Hour
	KVFlushMax = time.Hour
	// SocketPathMax is the most bytes of a Unix socket's path on Linux, less
	// the terminating zero.
	SocketPathMax = 107

	// HeaderTimeout bounds the time in which a header must arrive.
	HeaderTimeout = 5 * time.Second
	// SilenceMin is how long a connection may be silent before it is closed to
	// let another one in, where ConnectionsMax are open.
	SilenceMin = 50 * time.Millisecond
	// triesMax is how often a question is put to a node that cuts its
	// connections off.
	triesMax = 4
	// IdleTimeout closes connections without requests.
	IdleTimeout = 2 * time.Minute
	// DialTimeout bounds the client's connect.
	DialTimeout = 2 * time.Second
	// CallTimeout bounds the client's calls that don't wait for work.
	CallTimeout = 10 * time.Second
)
