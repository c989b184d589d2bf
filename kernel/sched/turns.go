package sched

import (
	"slices"
	"time"

	"ieg"
)

// weights are the parts that classes get of what they compete for: a device,
// where engines share it. The urgent get most, and nobody gets nothing.
var weights = [ieg.NumClasses]time.Duration{ieg.P0: 8, ieg.P1: 2, ieg.P2: 1}

// Charge is what device time counts for when an engine whose most urgent work
// was of a class has had it: the less urgent, the more.
func Charge(class ieg.Class, took time.Duration) time.Duration {
	return took * weights[ieg.P0] / weights[class]
}

// passesMax is how often a class is passed over by more urgent ones, while
// nothing of it runs, before its first one is next.
var passesMax = [ieg.NumClasses]int32{ieg.P1: 4, ieg.P2: 16}

// Passes counts admissions per class since one of it was last admitted.
type Passes [ieg.NumClasses]int32

// Admit counts an admission past those that wait in q.
func (p *Passes) Admit(class ieg.Class, q *Queue) {
	p[class] = 0
	for c := class + 1; c < ieg.NumClasses; c++ {
		if _, waits := q.Head(c); waits {
			p[c]++
		}
	}
}

// Overdue is the first key of a class that was passed over too often. running
// is the least urgent class that runs: it and those above it are served.
func (p *Passes) Overdue(q *Queue, running ieg.Class) (Key, bool) {
	for c := running + 1; c < ieg.NumClasses; c++ {
		if p[c] >= passesMax[c] {
			if k, ok := q.Head(c); ok {
				return k, true
			}
		}
	}
	return Key{}, false
}

// Head is the first key of a class.
func (q *Queue) Head(class ieg.Class) (Key, bool) {
	i, _ := slices.BinarySearchFunc(q.keys, class, func(k Key, c ieg.Class) int { return int(k.Class) - int(c) })
	if i == len(q.keys) || q.keys[i].Class != class {
		return Key{}, false
	}
	return q.keys[i], true
}
