package run

import "time"

// Limits of the loop.
const (
	// InboxEvents bounds the facts that wait for the loop. Supervisors block
	// on a full inbox, clients are refused with ErrBusy.
	InboxEvents = 4096
	// BacklogPauseBytes is the output a client may leave untaken before its
	// request is paused.
	BacklogPauseBytes = 256 << 10
	// StatusEvery is the least time between two published Status values.
	StatusEvery = 50 * time.Millisecond
)
