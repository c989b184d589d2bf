package zmtp

const (
	// FrameBytesMax bounds a frame that a peer sends: subscriptions and
	// requests are short.
	FrameBytesMax = 4 << 10
	// FramesMax bounds the frames of a message that a peer sends.
	FramesMax = 8
	// pingContextMax is what a PING may want back (ZMTP 3.1).
	pingContextMax = 16
)
