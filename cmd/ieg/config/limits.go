package config

import "time"

const (
	// FileBytesMax bounds the configuration file.
	FileBytesMax = 4 << 20
	// ErrorsMax bounds the errors told of one file.
	ErrorsMax = 20
	// ModelsMax bounds the models of a configuration.
	ModelsMax = 64
	// AliasesMax bounds the aliases of one model.
	AliasesMax = 64
	// SlotsMax is the most rows of KV of one engine.
	SlotsMax = 256
	// ThreadsMax bounds the threads of one engine.
	ThreadsMax = 1024
	// ContextMax bounds the tokens of one slot.
	ContextMax = 16 << 20
	// QueueMax bounds the waiting requests of one engine.
	QueueMax = 1 << 20
	// DrainTimeoutMax bounds the wait at the end.
	DrainTimeoutMax = 24 * time.Hour
	// SegmentsMax bounds the kept segments of the flight recorder.
	SegmentsMax = 10_000
	// HostMin and NVMeMin are the least sizes of the KV tiers, in bytes.
	HostMin = 16 << 20
	NVMeMin = 64 << 20
	// DepthMax bounds the nesting of the file.
	DepthMax = 32
)
