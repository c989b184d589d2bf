package jinja

import (
	"errors"
	"fmt"
)

// Errors with identity.
var (
	// ErrSyntax: the source is no template of this dialect.
	ErrSyntax = errors.New("jinja: syntax error")
	// ErrRaised: the template called raise_exception; the text is its message.
	ErrRaised = errors.New("the chat template refused the messages")
	// ErrRender: the template met values that it can't work with.
	ErrRender = errors.New("jinja: render error")
	// ErrLimit: the render used up its budget.
	ErrLimit = errors.New("jinja: limit reached")
)

// failure carries an error through the evaluator's recursion; Render and
// Parse are the only places that catch it.
type failure struct{ err error }

func fail(kind error, format string, args ...any) {
	panic(failure{fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))})
}

func failLine(line int, format string, args ...any) {
	fail(ErrSyntax, "line %d: %s", line, fmt.Sprintf(format, args...))
}

// caught turns a failure that is being thrown into *err; other panics go on.
func caught(err *error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = p.err
	default:
		panic(p)
	}
}
