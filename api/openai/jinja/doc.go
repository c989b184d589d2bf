// Package jinja renders the Jinja dialect that chat templates are written in:
// Jinja2 as model files use it, with trim_blocks and lstrip_blocks on, loop
// controls, the generation block, immutable values, and the functions
// raise_exception and strftime_now.
//
// It owns the language: parsing, evaluation, filters, tests, methods and the
// Python text forms of values. It knows nothing of chats, models or tokens.
//
// A model file is not trusted more than it must be: a render has a budget of
// work, of bytes made and of nesting (see Limits), counted and not timed, so
// that a template ends with an error and never with an exhausted process.
//
// The package is pure: the date that strftime_now prints is an argument.
// A Template is immutable after Parse and may be rendered from many
// goroutines at once. Values passed in are never changed.
package jinja
