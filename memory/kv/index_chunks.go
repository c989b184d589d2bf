package kv

import (
	"encoding/binary"

	"ieg"
)

// chunks is an array that grows without copying what it holds.
type chunks[T any] struct {
	parts []*[chunkLen]T
	n     int32
}

const (
	chunkBits = 10
	chunkLen  = 1 << chunkBits
)

func (c *chunks[T]) at(i int32) *T { return &c.parts[i>>chunkBits][i&(chunkLen-1)] }

func (c *chunks[T]) push(v T) {
	if int(c.n>>chunkBits) == len(c.parts) {
		c.parts = append(c.parts, new([chunkLen]T))
	}
	c.n++
	*c.at(c.n - 1) = v
}

func (c *chunks[T]) pop() T {
	c.n--
	return *c.at(c.n)
}

// table finds nodes by name. It is a linear hash: each new node splits at most
// one bucket, so it never stops to rehash. A bucket is a chain through the
// nodes' chain links. It does not shrink.
type table struct {
	heads chunks[Ref]
	mask  uint32 // of the buckets at the begin of this round: 2^k - 1
	split uint32 // buckets of this round that were split
	count int32
}

func newTable() table {
	var t table
	t.heads.push(NoRef)
	return t
}

// bucket is the place of a name; names are hashes already.
func (t *table) bucket(h *ieg.BlockHash) int32 {
	x := binary.LittleEndian.Uint32(h[:])
	b := x & t.mask
	if b < t.split {
		b = x & (2*t.mask + 1)
	}
	return int32(b)
}

func (x *Index) lookup(h *ieg.BlockHash) Ref {
	for r := *x.table.heads.at(x.table.bucket(h)); r != NoRef; r = x.node(r).chain {
		if x.node(r).hash == *h {
			return r
		}
	}
	return NoRef
}

func (x *Index) tableAdd(r Ref) {
	t := &x.table
	if t.count++; t.count > t.heads.n {
		x.splitBucket()
	}
	n := x.node(r)
	head := t.heads.at(t.bucket(&n.hash))
	n.chain, *head = *head, r
}

// splitBucket gives the next bucket of the round a twin and deals its nodes
// out between the two.
func (x *Index) splitBucket() {
	t := &x.table
	r := *t.heads.at(int32(t.split))
	*t.heads.at(int32(t.split)) = NoRef
	t.heads.push(NoRef)
	if t.split++; t.split > t.mask {
		t.mask, t.split = 2*t.mask+1, 0
	}
	for r != NoRef {
		n := x.node(r)
		next := n.chain
		head := t.heads.at(t.bucket(&n.hash))
		n.chain, *head = *head, r
		r = next
	}
}

func (x *Index) tableRemove(r Ref) {
	n := x.node(r)
	x.table.count--
	at := x.table.heads.at(x.table.bucket(&n.hash))
	for *at != r {
		at = &x.node(*at).chain
	}
	*at = n.chain
}
