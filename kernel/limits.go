package kernel

import "time"

// Limits of the machine.
const (
	// WaitingMax is the default bound on waiting sequences per engine.
	WaitingMax = 2048
	// HistoryRequests is the number of finished requests that can still be
	// explained.
	HistoryRequests = 1000
	// GrantSteps is the most repeats that an engine may run alone.
	GrantSteps = 32
	// AwaitTokensMin is the least gain for which a sequence awaits a prefix
	// that another one is computing.
	AwaitTokensMin = 8
	// DeathsMax: a request that was running at this many deaths of its engine
	// is failed; it may be what kills it.
	DeathsMax = 2
	// StepFailuresMax: an engine that fails this many steps in a row is
	// killed and started anew.
	StepFailuresMax = 3
	// AbortAfter: a cancelled sequence ends a step that would run, or does
	// run, longer than this from now on.
	AbortAfter = 120 * time.Millisecond
	// AbortsMax bounds the steps in a row that are aborted while others still
	// have work in them, so that cancels can't keep them from advancing.
	AbortsMax = 2
	// WantRowsMax is the number of waiting sequences whose rows give way last.
	WantRowsMax = 16
	// HangFloor and HangFactor bound a step: later than HangFloor +
	// HangFactor × predicted it is a hang. HangFirst replaces HangFloor for an
	// engine's first steps, which fault the weights in.
	HangFloor  = 1500 * time.Millisecond
	HangFirst  = 15 * time.Second
	HangFactor = 6
	// SaveRate, LoadRate, ReadRate and WriteRate are the seconds a byte of
	// copies from and to an engine and of the NVMe tier before they
	// were measured; RateGain is the weight of a new measurement of
	// RateBytes or more.
	SaveRate, LoadRate  = 0.5e-9, 0.5e-9
	ReadRate, WriteRate = 2e-9, 3e-9
	RateGain            = 0.2
	RateBytes           = 64 << 10
	// CopyMax bounds a copy of a step with streams, as planned: now and then one
	// takes two or three times that. CopyRoom is what the copies of a step may
	// take together in any case, and IdleCopy what those down of a step without
	// other work may.
	CopyMax  = 600 * time.Microsecond
	CopyRoom = 1200 * time.Microsecond
	IdleCopy = 10 * time.Millisecond
	// LongestFor is the time over which the longest copy is told.
	LongestFor = 30 * time.Second
	// RescueTokensMin is the least for which a row that is to be overwritten is
	// saved first.
	RescueTokensMin = 8
	// FetchesMax bounds how often one sequence has blocks fetched when its turn
	// has come.
	FetchesMax = 2
	// NotesMax bounds the lines on KV of one request.
	NotesMax = 16
	// SharedGrant bounds a grant while another engine of the device waits.
	SharedGrant = 4
)
