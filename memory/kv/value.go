package kv

import (
	"math"

	"ieg"
)

// decayed is a node's heat at a tick.
func (x *Index) decayed(n *node, at int32) float64 {
	age := float64(max(int64(at)-int64(n.used), 0)) * tick
	return float64(n.heat) * math.Exp2(-age/float64(x.cfg.HalfLife))
}

// Heat is a block's number of uses, each counted half after a half-life: high
// for what was used lately or often. Uses of what continues a block are uses
// of it. A root has the heat of all its texts; 0 when the name is unknown.
func (x *Index) Heat(h ieg.BlockHash, now ieg.Time) float64 {
	r := x.lookup(&h)
	if r == NoRef {
		return 0
	}
	return x.decayed(x.node(r), toTick(now))
}

// Value is what a block is worth, in seconds saved per second and byte:
//
//	heat · ln 2 ÷ half-life    expected uses per second
//	  × Saved(root, n, bytes)  seconds saved per use
//	  ÷ bytes
//
// A steady use every T seconds settles at a heat of half-life ÷ (T · ln 2), so
// the first line is then 1 ÷ T.
func (x *Index) Value(r Ref, now ieg.Time) float64 {
	n := x.node(r)
	perSecond := x.decayed(n, toTick(now)) * math.Ln2 / x.cfg.HalfLife.Seconds()
	saved := float64(n.n)
	if x.cfg.Saved != nil {
		saved = x.cfg.Saved(x.roots[n.root].hash, int32(n.n), int64(n.bytes))
	}
	return perSecond * saved / float64(max(n.bytes, 1))
}

// worth orders blocks under the policy: the least is given up first.
func (x *Index) worth(r Ref, now ieg.Time) float64 {
	if x.cfg.Policy == LRU {
		return float64(x.node(r).used)
	}
	return x.Value(r, now)
}

// Victim is the block to give up first among the leaves that are not pinned
// and that ok accepts (nil: all): the one worth least under the policy, the
// one used earlier if two are worth the same. With more than SampleAll
// leaves it is the best of SampleSize drawn ones. NoRef: there is none, or
// ok refused nearly all that were drawn; another call draws others.
func (x *Index) Victim(now ieg.Time, ok func(Ref) bool) Ref {
	best, least := NoRef, math.Inf(1)
	look := func(r Ref) bool {
		if ok != nil && !ok(r) {
			return false
		}
		w := x.worth(r, now)
		if best == NoRef || w < least || w == least && x.node(r).used < x.node(best).used {
			best, least = r, w
		}
		return true
	}
	if x.leaves.n <= SampleAll {
		for i := range x.leaves.n {
			look(*x.leaves.at(i))
		}
		return best
	}
	for drawn, seen := 0, 0; drawn < SampleTries && seen < SampleSize; drawn++ {
		if look(*x.leaves.at(int32(x.draw() % uint64(x.leaves.n)))) {
			seen++
		}
	}
	return best
}

// draw is the next number of the index's own generator (splitmix64).
func (x *Index) draw() uint64 {
	x.random += 0x9e3779b97f4a7c15
	z := x.random
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
