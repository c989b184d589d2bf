package spec

// Limits of the package.
const (
	// MaxBytes bounds a text to parse.
	MaxBytes = 1 << 20
	// MaxErrors is the number of errors reported at once.
	MaxErrors = 20
	// MaxItems bounds any list.
	MaxItems = 4096
	// suggestDistance is the most edits between a misspelt key and the one
	// that is suggested.
	suggestDistance = 3
)
