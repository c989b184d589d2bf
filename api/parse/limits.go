package parse

// The limits of the package.
const (
	// MaxNameBytes is the longest name of a tool, and the longest key of a
	// call that is looked at.
	MaxNameBytes = 256
	// MaxHeldBytes bounds what is held back of one call before its name is
	// known (arguments that precede the name included).
	MaxHeldBytes = 64 << 10
	// MaxSpaceBytes is the longest white space that is held back beside a
	// marker; longer runs are content.
	MaxSpaceBytes = 64
	// MaxDepth is the deepest nesting of arguments.
	MaxDepth = 128
	// MaxTagBytes is the longest reasoning tag that can be configured.
	MaxTagBytes = 64
	// MaxCalls is the most calls of one message; what follows is content.
	MaxCalls = 128
)
