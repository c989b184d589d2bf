package synth

import (
	"fmt"

	"ieg"
)

// cells is the KV: slots of positions, each of which refers to a cell. In the
// unified layout a copied prefix shares its cells; with a stream per slot each
// position has its own.
//
//	slot 0: c0 c1 c2 c5        cell c0 … c2: 2 references
//	slot 1: c0 c1 c2 c7 c8     cells c5, c7, c8: 1 reference
type cells struct {
	layout ieg.Layout
	most   int // cells in all
	used   int
	hash   []uint64 // per cell: the prefix up to and with its token
	refs   []int32  // per cell
	free   []int32
	slots  [][]int32
	marked []uint64 // per slot: the step that works on it
}

func newCells(layout ieg.Layout, slots, most int) *cells {
	return &cells{layout: layout, most: most, slots: make([][]int32, slots), marked: make([]uint64, slots)}
}

func (c *cells) has(s ieg.Slot) bool { return s >= 0 && int(s) < len(c.slots) }

// put appends a position; the caller has checked that a cell is free.
func (c *cells) put(s ieg.Slot, hash uint64) {
	var i int32
	if n := len(c.free); n > 0 {
		i, c.free = c.free[n-1], c.free[:n-1]
	} else {
		i = int32(len(c.hash))
		c.hash, c.refs = append(c.hash, 0), append(c.refs, 0)
	}
	c.hash[i], c.refs[i] = hash, 1
	c.slots[s] = append(c.slots[s], i)
	c.used++
}

// trim keeps the first n positions of a slot.
func (c *cells) trim(s ieg.Slot, n int) {
	for _, i := range c.slots[s][n:] {
		if c.refs[i]--; c.refs[i] == 0 {
			c.free = append(c.free, i)
			c.used--
		}
	}
	c.slots[s] = c.slots[s][:n]
}

// prefix is the hash of the first n tokens of a slot that holds them.
func (c *cells) prefix(s ieg.Slot, n int32, root uint64) uint64 {
	if n == 0 {
		return root
	}
	return c.hash[c.slots[s][n-1]]
}

// freed is the number of cells that a trim to n positions would free.
func (c *cells) freed(s ieg.Slot, n int) (count int) {
	for _, i := range c.slots[s][n:] {
		if c.refs[i] == 1 {
			count++
		}
	}
	return count
}

// apply does a Trim or Copy or says why it can't be.
func (c *cells) apply(op *ieg.KVOp) error {
	if !c.has(op.To) || op.N < 0 {
		return fmt.Errorf("operation on slot %d keeps %d tokens; there are %d slots", op.To, op.N, len(c.slots))
	}
	if op.Kind == ieg.KVTrim {
		if int(op.N) > len(c.slots[op.To]) {
			return fmt.Errorf("trim of slot %d to %d tokens: it holds %d", op.To, op.N, len(c.slots[op.To]))
		}
		c.trim(op.To, int(op.N))
		return nil
	}
	if !c.has(op.From) || op.From == op.To {
		return fmt.Errorf("copy from slot %d to slot %d; there are %d slots", op.From, op.To, len(c.slots))
	}
	from := c.slots[op.From]
	if int(op.N) > len(from) {
		return fmt.Errorf("copy of %d tokens from slot %d to slot %d: it holds %d", op.N, op.From, op.To, len(from))
	}
	c.trim(op.To, 0)
	for _, i := range from[:op.N] {
		if c.layout == ieg.Streams {
			c.put(op.To, c.hash[i])
			continue
		}
		c.refs[i]++
		c.slots[op.To] = append(c.slots[op.To], i)
	}
	return nil
}

// holds tells whether a slot holds exactly the prefix of n tokens with hash h.
func (c *cells) holds(s ieg.Slot, n int32, h uint64) error {
	have := c.slots[s]
	if len(have) != int(n) {
		return fmt.Errorf("slot %d holds %d tokens, the work starts at %d", s, len(have), n)
	}
	if n > 0 && c.hash[have[n-1]] != h {
		return fmt.Errorf("slot %d holds %d tokens of another text", s, n)
	}
	return nil
}
