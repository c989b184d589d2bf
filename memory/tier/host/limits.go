package host

const (
	// DefaultPageBytes is the size of a page when none is given.
	DefaultPageBytes = 256 << 10
	// Sizes of pages: those of the processor, and what one copy should move
	// at most.
	minPageBytes = 4 << 10
	maxPageBytes = 64 << 20
	// maxPages bounds an arena; pages are numbered by 32 bits.
	maxPages = 1 << 31
)
