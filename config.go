package ieg

import "time"

// Preemption says when a running sequence gives way (preemption_config).
type Preemption struct {
	Enabled bool
	// MinPriorityGap is by how many classes the newcomer must be more urgent.
	MinPriorityGap int
	// Overhead is the prior of what a preemption costs; measured afterwards.
	Overhead time.Duration
	// Resume is "immediate": a preempted sequence goes on as soon as it fits.
	Resume string
	// MaxPerRequest bounds how often one request is preempted.
	MaxPerRequest int
}

// KVTransfer says how KV moves between devices and hosts
// (kv_transfer_config).
type KVTransfer struct {
	ChunkSize      int64 // bytes: the largest unit of a move in flight
	PipelineDepth  int   // chunks in flight
	OverlapCompute bool  // stream while the prefill still computes
	Compression    string
}

// Compressions of KV in motion.
const (
	CompressNone = "none"
	CompressINT8 = "int8"
	CompressAuto = "auto" // when it pays
)

// ProfilingMatrix is what off-line profiling measures (profiling_matrix).
type ProfilingMatrix struct {
	Models, Devices, Precisions []string
	Batches, Lengths            []int
	// Prefill and Decode name the quantities measured.
	Prefill, Decode []string
	Absent          []AbsentCells
}

// AbsentCells marks cells that can't exist. Empty fields match all.
type AbsentCells struct {
	Model, Device, Precision string
	Batch, Length            int
	Reason                   string
}

// ExecutionPaths lists how one model can run (execution_path_registry).
type ExecutionPaths struct {
	Model    string
	Variants []Variant
}

// Variant is a model in one precision for one backend.
type Variant struct {
	Precision, Backend string
	Devices            []string // compatible device models
	Artifact           string   // path of its files
}

// FallbackPolicy says what to try when a path's devices are not to be had
// (fallback_policy).
type FallbackPolicy struct {
	Order []string
	// MaxLatencyIncrease is a share: 0.5 allows half as much again.
	MaxLatencyIncrease float64
}

// The steps of a fallback, in their default order.
const (
	SameVendorSameSeries     = "same_vendor_same_series"
	SameVendorOtherSeries    = "same_vendor_other_series"
	OtherVendorSamePrecision = "other_vendor_same_precision"
	LowerPrecision           = "lower_precision"
)
