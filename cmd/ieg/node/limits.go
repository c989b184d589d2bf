package node

import "time"

const (
	// DevicesMax bounds the devices of a host.
	DevicesMax = 1024
	// DeathsKept is how many ends of engines are remembered.
	DeathsKept = 64
	// DeathLogLines is how much of an engine's last output is remembered.
	DeathLogLines = 40
	// RestartWait is how long a request waits for an engine that is being
	// started again before it is turned away.
	RestartWait = 5 * time.Second
	// CloseWait bounds the orderly end of a child; then it is killed.
	CloseWait = 10 * time.Second
	// InspectWait bounds a look into the kernel.
	InspectWait = 5 * time.Second
	// FlushPollEvery is the time between two looks of a flush.
	FlushPollEvery = 20 * time.Millisecond
	// SaltedMax bounds the roots of texts with a cache_salt that are known by
	// their model.
	SaltedMax = 4096
	// OverheadBytes is the room that a model is charged beside its weights
	// and KV until it has told its true size.
	OverheadBytes = 128 << 20
)
