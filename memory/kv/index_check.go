package kv

import (
	"fmt"
	"math"

	"ieg"
)

// Check proves links, counts and sums; it takes time for all blocks. For
// tests.
func (x *Index) Check() error {
	var sum indexSum
	roots := make([]int, len(x.roots))
	for r := Ref(1); r < x.Refs(); r++ {
		n := x.node(r)
		if n.flags == 0 && n.n == 0 { // free
			sum.free++
			continue
		}
		roots[n.root]++
		sum.add(n)
		if err := x.checkNode(r, n); err != nil {
			return fmt.Errorf("node %d (%v): %w", r, n.hash, err)
		}
	}
	if sum.blocks != x.blocks || sum.tokens != x.tokens || sum.bytes != x.bytes {
		return fmt.Errorf("the sums are %d blocks, %d tokens, %d bytes, not %+v", x.blocks, x.tokens, x.bytes, sum)
	}
	if sum.links != sum.linked {
		return fmt.Errorf("%d nodes have a parent, %d are the child of one", sum.links, sum.linked)
	}
	if n := sum.leaves; n != int(x.leaves.n) {
		return fmt.Errorf("%d nodes are leaves, %d are listed", n, x.leaves.n)
	}
	if n := int(x.table.count); n != sum.nodes {
		return fmt.Errorf("the table has %d of %d nodes", n, sum.nodes)
	}
	for r := x.free; r != NoRef; r = x.node(r).next {
		sum.free--
	}
	if sum.free != 0 {
		return fmt.Errorf("%d free nodes are not listed", sum.free)
	}
	return x.checkRoots(roots)
}

type indexSum struct {
	blocks, nodes, leaves, free int
	links, linked               int // nodes with a parent; nodes met as a child, counted by who is first
	tokens, bytes               int64
}

func (s *indexSum) add(n *node) {
	s.nodes++
	if n.flags&flagGhost == 0 {
		s.blocks++
	}
	if n.leaf != 0 {
		s.leaves++
	}
	if n.parent != NoRef {
		s.links++
	}
	if n.child != NoRef {
		s.linked++
	}
	if n.next != NoRef {
		s.linked++
	}
	s.tokens += int64(n.n)
	s.bytes += int64(n.bytes)
}

func (x *Index) checkNode(r Ref, n *node) error {
	ghost := n.flags&flagGhost != 0
	switch {
	case x.lookup(&n.hash) != r:
		return fmt.Errorf("it is not found by its name")
	case ghost && (n.child == NoRef || n.parent != NoRef || n.n != 0 || n.bytes != 0):
		return fmt.Errorf("a ghost with content, with a parent or without children")
	case !ghost && n.n == 0, n.n > ieg.BlockTokens:
		return fmt.Errorf("it has %d tokens", n.n)
	case !ghost && n.parent == NoRef:
		return fmt.Errorf("a block without parent")
	case n.child != NoRef && !ghost && n.n != ieg.BlockTokens:
		return fmt.Errorf("a block of %d tokens has children", n.n)
	case (n.child == NoRef && n.flags&(flagGhost|flagPinned) == 0) != (n.leaf != 0):
		return fmt.Errorf("leaf: place %d", n.leaf)
	case n.leaf != 0 && *x.leaves.at(n.leaf - 1) != r:
		return fmt.Errorf("another one is in its place among the leaves")
	case n.heat < 0 || math.IsNaN(float64(n.heat)):
		return fmt.Errorf("heat %g", n.heat)
	}
	if c := n.child; c != NoRef && (x.node(c).parent != r || x.node(c).prev != NoRef) {
		return fmt.Errorf("its first child %d is not its own", c)
	}
	if c := n.next; c != NoRef && (x.node(c).parent != n.parent || x.node(c).prev != r) {
		return fmt.Errorf("its sibling %d does not follow it", c)
	}
	if p := n.parent; p != NoRef && (x.node(p).depth != n.depth-1 || x.node(p).root != n.root) {
		return fmt.Errorf("its parent %d is of another text", p)
	}
	return nil
}

func (x *Index) checkRoots(nodes []int) error {
	for i, n := range nodes {
		if row := x.roots[i]; row.nodes != n {
			return fmt.Errorf("root %v has %d nodes, not %d", row.hash, n, row.nodes)
		} else if got, ok := x.rootBy[row.hash]; n > 0 && (!ok || got != uint32(i)) {
			return fmt.Errorf("root %v is not found", row.hash)
		}
	}
	if used := len(x.roots) - len(x.rootsF); used != len(x.rootBy) {
		return fmt.Errorf("%d roots are used, %d are found", used, len(x.rootBy))
	}
	return nil
}
