package main

import "time"

const (
	// WatchEvery is the time between two looks of --watch and top.
	WatchEvery = 250 * time.Millisecond
	// TopEvery is the time between two pictures of top.
	TopEvery = time.Second
	// LoadPollEvery is the time between two looks at a loading model.
	LoadPollEvery = 100 * time.Millisecond
	// HistoryTurnsMax bounds the turns that the REPL of chat keeps.
	HistoryTurnsMax = 1000
	// EventBytesMax bounds one event of a stream that chat reads.
	EventBytesMax = 4 << 20
	// ErrorBodyBytesMax bounds the body of an error that chat reads.
	ErrorBodyBytesMax = 1 << 20
	// StateColumnsMax bounds the state in a table of models.
	StateColumnsMax = 40
	// BarCells is the width of bars in pictures.
	BarCells = 32
	// KVBarCells is that of bars in the table of KV tiers.
	KVBarCells = 12
	// ShortHashDigits is how much of a block's hash a table shows.
	ShortHashDigits = 12
)

// Sizes of the KV tiers below the devices.
const (
	// ArenaPage is the size of a page of the arena, in bytes.
	ArenaPage = 256 << 10
	// HostShare of the memory that may be taken is the arena's, at most
	// HostMost bytes.
	HostShare = 0.2
	HostMost  = 256 << 30
	// NVMeShare of the free disk is the NVMe tier's, at most NVMeMost bytes.
	NVMeShare = 0.2
	NVMeMost  = 100 << 30
)

// Limits of the node's doors.
const (
	// AnswerWait is what the API has to write its last answers at the end.
	AnswerWait = 2 * time.Second
	// CloseWait bounds the end of the doors.
	CloseWait = 5 * time.Second
	// ProbeWait bounds the probe of one build of the engine's library.
	ProbeWait = 20 * time.Second
	// OpenFilesLeast is the least number of open files that a node works with.
	OpenFilesLeast = 1024
	// LoadPatience is what systemd is asked for at each progress of a load.
	LoadPatience = time.Minute
)
