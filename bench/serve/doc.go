// Package serve starts a server program for a benchmark or a test, waits until
// it answers, reads its memory, and ends it: only processes that it started
// itself, by their ids.
package serve
