// Package enginetest is the conformance suite of engines: what every
// engine.Runner must do, whether it is called in this process (Run) or lives
// in a child (RunChild, which adds grants, deaths and restarts).
//
// It owns no engine. A test binary that hosts children calls Main from its
// TestMain.
package enginetest
