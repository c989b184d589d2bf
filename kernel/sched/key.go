package sched

import (
	"slices"

	"ieg"
)

// Key orders ready work: class, then the earlier deadline (less slack), then
// the node type, then arrival. Lower is first.
type Key struct {
	Class    ieg.Class
	Deadline ieg.Time
	Type     ieg.NodeType
	Arrival  ieg.Time
	Seq      ieg.SeqID // breaks ties in the order of creation
}

// typeRank maps node types to the specification's priorities: high, high,
// medium, medium, low.
var typeRank = [...]int{ieg.ComputeNode: 0, ieg.MemoryNode: 0, ieg.IONode: 1, ieg.ToolNode: 1, ieg.ControlNode: 2}

// Compare is negative if k comes before o.
func (k Key) Compare(o Key) int {
	switch {
	case k.Class != o.Class:
		return int(k.Class) - int(o.Class)
	case k.Deadline != o.Deadline:
		return sign(k.Deadline < o.Deadline)
	case typeRank[k.Type] != typeRank[o.Type]:
		return typeRank[k.Type] - typeRank[o.Type]
	case k.Arrival != o.Arrival:
		return sign(k.Arrival < o.Arrival)
	case k.Seq != o.Seq:
		return sign(k.Seq < o.Seq)
	}
	return 0
}

func sign(before bool) int {
	if before {
		return -1
	}
	return 1
}

// Queue is an ordered list of keys. Its zero value is empty.
type Queue struct{ keys []Key }

// Push inserts a key.
func (q *Queue) Push(k Key) {
	i, _ := slices.BinarySearchFunc(q.keys, k, Key.Compare)
	q.keys = slices.Insert(q.keys, i, k)
}

// Remove takes a key out; false if it is not there.
func (q *Queue) Remove(k Key) bool {
	i, ok := slices.BinarySearchFunc(q.keys, k, Key.Compare)
	if ok {
		q.keys = slices.Delete(q.keys, i, i+1)
	}
	return ok
}

// Len is the number of keys.
func (q *Queue) Len() int { return len(q.keys) }

// At returns the i-th key in order.
func (q *Queue) At(i int) Key { return q.keys[i] }
