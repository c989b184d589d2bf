package kv

import (
	"math"

	"ieg"
)

// Policy says which block gives way first.
type Policy uint8

// The policies.
const (
	// ByValue: what is worth least: expected reuse × seconds saved ÷ bytes.
	ByValue Policy = iota
	// LRU: what was not used for longest, the baseline.
	LRU
)

var policyNames = [...]string{"value", "lru"}

// String is the name used in the configuration.
func (p Policy) String() string { return policyNames[p] }

// Heat is how often something was used lately: the number of uses, each
// weighing half after HalfLife.
type Heat struct {
	Last ieg.Time
	Uses float64
}

// Touch counts a use.
func (h *Heat) Touch(now ieg.Time) { h.Uses, h.Last = h.At(now)+1, now }

// At is the heat at a time.
func (h *Heat) At(now ieg.Time) float64 {
	return h.Uses * math.Exp2(-now.Sub(h.Last).Seconds()/HalfLife.Seconds())
}

// victim is the resident block that gives way first: among those that nobody
// holds, without a child in the arena, that are not above keep. Blocks that a
// live sequence will need come last, and those of them of which the NVMe tier
// has no copy stay; so do those that are queued for it, unless there is a press.
// In a large arena a sample is looked at.
func (h *Host) victim(keep *Known, now ieg.Time, press bool) *Known {
	var best *Known
	var least float64
	try := func(k *Known) {
		if k.held > 0 || (!k.spare() || k.Queued && !press) && !k.Disk || k == keep || k.coversKid() || keep != nil && k.above(keep) {
			return
		}
		v := h.worth(k, now)
		if best == nil || k.spare() && !best.spare() || k.spare() == best.spare() && v < least {
			best, least = k, v
		}
	}
	if len(h.resident) <= SampleAll {
		for _, k := range h.resident {
			try(k)
		}
		return best
	}
	for i := 0; i < SampleTries && (i < SampleSize || best == nil); i++ {
		h.turn = h.turn*6364136223846793005 + 1442695040888963407
		k := h.resident[(h.turn>>33)%uint64(len(h.resident))]
		for down := k; down != nil; down = down.residentKid() {
			k = down
		}
		try(k)
	}
	return best
}

// residentKid is a child in the arena, nil if there is none.
func (k *Known) residentKid() *Known {
	for _, kid := range k.kids {
		if kid.State != HostAbsent {
			return kid
		}
	}
	return nil
}

func (k *Known) coversKid() bool { return k.residentKid() != nil }

// above tells whether k is a block that o follows.
func (k *Known) above(o *Known) bool {
	for ; o != nil; o = o.parent {
		if o == k {
			return true
		}
	}
	return false
}

// Rates are the measured speeds that say what a lost copy costs.
type Rates struct {
	Token float64 // seconds to compute a token in an empty context
	Pair  float64 // seconds per pair of a token and one before it
	Byte  float64 // seconds to read a byte from the NVMe tier
}

// SetRates takes in the speeds as they are now.
func (h *Host) SetRates(r Rates) { h.rates = r }

// spare tells that no live sequence needs the block.
func (k *Known) spare() bool { return k.wanted == 0 }

// worth orders blocks by what is lost with their copy in the arena, in seconds
// a byte: expected uses × time to read it from the NVMe tier, or to compute it
// where that has no copy.
func (h *Host) worth(k *Known, now ieg.Time) float64 {
	if h.cfg.Policy == LRU {
		return float64(k.heat.Last)
	}
	seconds := float64(k.Kept.Bytes) * h.rates.Byte
	if !k.Disk {
		n, past := float64(k.N()), float64(k.Start)
		seconds = n*h.rates.Token + n*(past+n/2)*h.rates.Pair
	}
	return k.heat.At(now) * seconds / float64(k.Bytes)
}

// ordered lists all blocks, each after its parent, roots included.
func (h *Host) ordered() []*Known {
	all := make([]*Known, 0, len(h.blocks))
	var add func([]*Known)
	add = func(list []*Known) {
		for _, k := range list {
			all = append(all, k)
			add(k.kids)
		}
	}
	add(h.roots)
	return all
}
