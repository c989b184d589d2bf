package sched_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"ieg"
	"ieg/kernel/sched"
)

// TestNobodyStarves admits from a queue that never runs dry, most urgent
// first unless somebody is overdue: every class gets in within bounds, and the
// urgent get most.
func TestNobodyStarves(t *testing.T) {
	var q sched.Queue
	var p sched.Passes
	var admitted, since [ieg.NumClasses]int
	id := ieg.SeqID(0)
	push := func(c ieg.Class) {
		id++
		q.Push(sched.Key{Class: c, Deadline: ieg.Never, Arrival: ieg.Time(id), Seq: id})
	}
	r := rand.New(rand.NewPCG(1, 2))
	for c := ieg.P0; c < ieg.NumClasses; c++ {
		push(c)
	}
	for range 10_000 {
		push(ieg.Class(r.IntN(int(ieg.NumClasses))))
		k := q.At(0)
		if o, ok := p.Overdue(&q, ieg.P0); ok {
			k = o
		}
		q.Remove(k)
		p.Admit(k.Class, &q)
		push(k.Class) // one of each always waits
		admitted[k.Class]++
		for c := range since {
			if since[c]++; since[c] > 40 {
				t.Fatalf("class P%d waits since %d admissions", c, since[c])
			}
		}
		since[k.Class] = 0
	}
	if admitted[ieg.P0] < 3*admitted[ieg.P1] || admitted[ieg.P1] < 3*admitted[ieg.P2] {
		t.Errorf("admitted %v", admitted)
	}
}

// TestPassesNeedASpell: a class of which something runs is not overdue.
func TestPassesNeedASpell(t *testing.T) {
	var q sched.Queue
	var p sched.Passes
	q.Push(sched.Key{Class: ieg.P1, Seq: 1})
	for range 100 {
		p.Admit(ieg.P0, &q)
	}
	if k, ok := p.Overdue(&q, ieg.P0); !ok || k.Seq != 1 {
		t.Errorf("nothing overdue after 100 admissions")
	}
	if _, ok := p.Overdue(&q, ieg.P1); ok {
		t.Errorf("overdue though its class runs")
	}
	p.Admit(ieg.P1, &q)
	if _, ok := p.Overdue(&q, ieg.P0); ok {
		t.Errorf("overdue though one was just admitted")
	}
}

func TestChargeFavoursTheUrgent(t *testing.T) {
	p0, p1, p2 := sched.Charge(ieg.P0, time.Second), sched.Charge(ieg.P1, time.Second), sched.Charge(ieg.P2, time.Second)
	if p0 != time.Second || p1 <= p0 || p2 <= p1 {
		t.Errorf("a second counts %v, %v, %v", p0, p1, p2)
	}
}
