package cost

import (
	"fmt"
	"math"
	"strings"

	"ieg"
)

// Analysis is the bottleneck analysis of one node on one device, to be printed
// and checked by hand.
type Analysis struct {
	Label    string
	Demand   ieg.Demand
	Capacity Capacity
	Estimate Estimate
	// Resident bytes of Demand.Memory are on the device already; Free is what
	// is left there.
	Resident, Free int64
}

// String prints each term with the numbers that made it:
//
//	prefill-001: compute
//	  compute    573.4 TFLOP ÷ 312 TFLOP/s = 1.838 s  ← bottleneck
//	  bandwidth  …
//	  memory     40 GB, 35 GB resident: 5 GB ≤ 30.4 GB free
func (a Analysis) String() string {
	var b strings.Builder
	e := &a.Estimate
	fmt.Fprintf(&b, "%s: %s\n", a.Label, orNone(e.Bottleneck))
	term := func(kind Bottleneck, amount, rate float64, unit string, seconds float64) {
		mark := ""
		if kind == e.Bottleneck {
			mark = "  ← bottleneck"
		}
		fmt.Fprintf(&b, "  %-9s  %s ÷ %s/s = %s%s\n", kind, SI(amount, unit), SI(rate, unit), Seconds(seconds), mark)
	}
	term(Compute, a.Demand.FLOPs, a.Capacity.Compute, "FLOP", e.Compute)
	term(Bandwidth, a.Demand.Bytes, a.Capacity.Bandwidth, "B", e.Bandwidth)
	term(IO, a.Demand.IO, a.Capacity.IO, "B", e.IO)
	if e.Sync > 0 {
		fmt.Fprintf(&b, "  %-9s  %s inside the device group\n", "sync", Seconds(e.Sync))
	}
	if e.Scale != 1 {
		fmt.Fprintf(&b, "  %-9s  × %.3g from telemetry\n", "scale", e.Scale)
	}
	fmt.Fprintf(&b, "  %-9s  %s\n", "memory", MemoryNote(a.Demand.Memory, a.Resident, a.Free))
	fmt.Fprintf(&b, "  %-9s  %s (%s)\n", "T", Seconds(e.Seconds), e.Source)
	return b.String()
}

func orNone(b Bottleneck) string {
	if b == NoBottleneck {
		return "no demand"
	}
	return b.String()
}

// MemoryNote says whether need bytes fit and why.
func MemoryNote(need, resident, free int64) string {
	missing := max(need-resident, 0)
	sign := "≤"
	if missing > free {
		sign = ">"
	}
	if resident > 0 {
		return fmt.Sprintf("%s, %s resident: %s %s %s free", SI(float64(need), "B"),
			SI(float64(min(resident, need)), "B"), SI(float64(missing), "B"), sign, SI(float64(free), "B"))
	}
	return fmt.Sprintf("%s %s %s free", SI(float64(need), "B"), sign, SI(float64(free), "B"))
}

// SI prints an amount with a decimal prefix and four digits: "573.4 TFLOP".
func SI(v float64, unit string) string {
	prefixes := [...]string{"", "k", "M", "G", "T", "P", "E"}
	i := 0
	for math.Abs(v) >= 999.95 && i < len(prefixes)-1 {
		v /= 1000
		i++
	}
	return fmt.Sprintf("%.4g %s%s", v, prefixes[i], unit)
}

// Seconds prints a time with four digits in s, ms or µs.
func Seconds(s float64) string {
	switch {
	case s == 0:
		return "0 s"
	case math.Abs(s) >= 1:
		return fmt.Sprintf("%.4g s", s)
	case math.Abs(s) >= 1e-3:
		return fmt.Sprintf("%.4g ms", s*1e3)
	}
	return fmt.Sprintf("%.4g µs", s*1e6)
}
