package cost

import (
	"strings"

	"ieg"
)

// Bottleneck names the term of T(v,d) that is the largest.
type Bottleneck uint8

// The bottlenecks.
const (
	NoBottleneck Bottleneck = iota // the node demands nothing
	Compute
	Bandwidth
	IO
)

var bottleneckNames = [...]string{"", "compute", "bandwidth", "io"}

// String is the bottleneck's name as shown by explain.
func (b Bottleneck) String() string { return bottleneckNames[b] }

// Source says where an estimate comes from.
type Source uint8

// The sources, from least to most trusted.
const (
	FromModel   Source = iota // semantic model on fitted capacities
	FromTable                 // off-line profiling
	FromProfile               // measured steps of the engine itself
)

var sourceNames = [...]string{"model", "table", "profile"}

// String is the source's name.
func (s Source) String() string { return sourceNames[s] }

// Capacity is what a device attains: FLOP/s, bytes/s of memory, bytes/s of
// network and disk. It is never the raw data sheet.
type Capacity struct {
	Compute, Bandwidth, IO float64
}

// Efficiency is the share of the data-sheet peak that is attained, 0 … 1.
type Efficiency struct {
	Compute, Bandwidth, IO float64
}

// DefaultEfficiency holds before anything was fitted: a measured 70B prefill
// reaches about 45 % of the peak, streaming reads about 70 %.
var DefaultEfficiency = Efficiency{Compute: 0.45, Bandwidth: 0.70, IO: 0.80}

// Peak is the efficiency of a data sheet taken at its word; for checking
// formulas, not for decisions.
var Peak = Efficiency{Compute: 1, Bandwidth: 1, IO: 1}

// CapacityOf is data sheet × efficiency for work in a precision. Capacities
// that the sheet does not state get the priors of limits.go.
func CapacityOf(r *ieg.ResourceSpec, precision string, e Efficiency) Capacity {
	c := Capacity{
		Compute:   peakCompute(r, precision) * e.Compute,
		Bandwidth: r.Memory.Bandwidth * e.Bandwidth,
		IO:        max(r.IO.Read, r.IO.Net) * e.IO,
	}
	if c.Compute <= 0 {
		c.Compute = PriorFLOPS
	}
	if c.Bandwidth <= 0 {
		c.Bandwidth = PriorBandwidth
	}
	if c.IO <= 0 {
		c.IO = PriorIO
	}
	return c
}

// peakCompute takes the 8-bit rate for 8-bit precisions where the device has
// one, and the 16-bit rate otherwise.
func peakCompute(r *ieg.ResourceSpec, precision string) float64 {
	if (precision == "int8" || precision == "fp8") && r.Compute.INT8 > 0 {
		return r.Compute.INT8
	}
	return r.Compute.FP16
}

// Supports tells whether a device states a precision. Weight-only
// quantisations (q4_k, …) compute in 16 bits. A device that lists none is
// taken at 16 and 32 bits.
func Supports(r *ieg.ResourceSpec, precision string) bool {
	p := strings.ToLower(precision)
	switch {
	case p == "" || p == "none":
		return true
	case len(p) > 1 && p[0] == 'q' && p[1] >= '0' && p[1] <= '9', strings.HasPrefix(p, "iq"):
		p = "fp16"
	case p == "f16":
		p = "fp16"
	}
	if len(r.Compute.Precisions) == 0 {
		return p == "fp16" || p == "bf16" || p == "fp32"
	}
	for _, have := range r.Compute.Precisions {
		if strings.EqualFold(have, p) {
			return true
		}
	}
	return false
}

// Estimate is T(v,d) with its terms, all in seconds.
type Estimate struct {
	Seconds                float64
	Compute, Bandwidth, IO float64
	Sync                   float64 // inside a device group
	Bottleneck             Bottleneck
	Source                 Source
	// Scale is the telemetry correction that Seconds already contains.
	Scale float64
}

// Time is T(v,d) = max(C/Cap_C, B/Cap_B, IO/Cap_IO); ties go to the first.
func (c Capacity) Time(d ieg.Demand) Estimate {
	e := Estimate{Compute: d.FLOPs / c.Compute, Bandwidth: d.Bytes / c.Bandwidth, IO: d.IO / c.IO, Scale: 1}
	e.Seconds, e.Bottleneck = e.Compute, Compute
	if e.Bandwidth > e.Seconds {
		e.Seconds, e.Bottleneck = e.Bandwidth, Bandwidth
	}
	if e.IO > e.Seconds {
		e.Seconds, e.Bottleneck = e.IO, IO
	}
	if e.Seconds == 0 {
		e.Bottleneck = NoBottleneck
	}
	return e
}

// Group is the capacity of members working as one device. Tensor parallelism
// runs at the pace of the slowest, times their number; a pipeline gives one
// request no more speed than one device, only memory.
func Group(members []Capacity, strategy string) Capacity {
	c := members[0]
	for _, m := range members[1:] {
		c.Compute, c.Bandwidth, c.IO = min(c.Compute, m.Compute), min(c.Bandwidth, m.Bandwidth), min(c.IO, m.IO)
	}
	if strategy == Pipeline {
		return c
	}
	n := float64(len(members))
	return Capacity{Compute: c.Compute * n, Bandwidth: c.Bandwidth * n, IO: c.IO}
}

// Fit moves the efficiency of the bottleneck so that demand d on the data
// sheet's capacity would have taken the observed seconds.
func (e *Efficiency) Fit(peak Capacity, d ieg.Demand, seconds, rate float64) Bottleneck {
	if seconds <= 0 {
		return NoBottleneck
	}
	now := Capacity{peak.Compute * e.Compute, peak.Bandwidth * e.Bandwidth, peak.IO * e.IO}
	t := now.Time(d)
	move := func(have *float64, ideal float64) {
		*have += rate * (min(ideal/seconds, 1) - *have)
	}
	switch t.Bottleneck {
	case Compute:
		move(&e.Compute, d.FLOPs/peak.Compute)
	case Bandwidth:
		move(&e.Bandwidth, d.Bytes/peak.Bandwidth)
	case IO:
		move(&e.IO, d.IO/peak.IO)
	}
	return t.Bottleneck
}
