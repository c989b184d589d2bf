// Package report holds the rows of the benchmarks: a value, its bound, what it
// was measured against, and how to run it again. It writes them as a table for
// people and as JSON for programs. It measures nothing.
package report
