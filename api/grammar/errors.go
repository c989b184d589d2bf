package grammar

import (
	"fmt"

	"ieg"
)

// Error says what in a schema, expression or tool can't be made a grammar. It
// is ieg.ErrUnsupported.
type Error struct {
	// Pointer is the JSON pointer of the keyword, as a URI fragment ("#/…");
	// "" outside of schemas.
	Pointer string
	Reason  string
}

func (e *Error) Error() string {
	if e.Pointer == "" {
		return e.Reason
	}
	return fmt.Sprintf("schema at %s: %s", e.Pointer, e.Reason)
}

// Unwrap gives the error its identity.
func (e *Error) Unwrap() error { return ieg.ErrUnsupported }

func errAt(pointer, format string, args ...any) error {
	return &Error{Pointer: pointer, Reason: fmt.Sprintf(format, args...)}
}
