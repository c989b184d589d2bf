package kv

import (
	"iter"
	"math"
	"time"

	"ieg"
)

// Ref names a node of an Index until it is removed; it is then used again.
type Ref int32

// NoRef is no node.
const NoRef Ref = 0

// IndexConfig configures an Index.
type IndexConfig struct {
	// HalfLife is the time after which a use counts half (default HalfLife).
	HalfLife time.Duration
	Policy   Policy
	// Saved is the time in seconds that is saved, each time that a block of n
	// tokens and so many bytes is used, by its being here: what it takes to
	// compute or bring it otherwise, less what it takes from here. nil: one
	// second a token, so that only the ratio of tokens to bytes counts.
	Saved func(root ieg.BlockHash, n int32, bytes int64) float64
	// Seed decides which leaves Victim looks at.
	Seed uint64
}

// Entry is what an Index knows of a block.
type Entry struct {
	Hash   ieg.BlockHash
	Parent ieg.BlockHash // the block before it, or Root
	Root   ieg.BlockHash
	Start  int32 // position of its first token, a multiple of BlockTokens
	N      int32 // tokens, 1 to BlockTokens
	Bytes  int64 // at most MaxBlockBytes
	// Heat is the number of uses up to Used, each counted half after a
	// half-life; a new block has 1. Used is kept to 67 ms.
	Heat   float32
	Used   ieg.Time
	Pinned bool  // never a victim, and so nothing that leads to it
	Bits   uint8 // two bits for the owner of the index
}

// MaxBlockBytes bounds Entry.Bytes.
const MaxBlockBytes = math.MaxUint32

// Index finds blocks by name and knows them as a forest: the children of a
// block are those that continue its text. It is made for millions of blocks:
// about 75 bytes a block, no pointers that a collector must follow, and no
// call that takes time for all of them.
//
// Any block may be removed. While blocks that continue it are here, it leaves
// a ghost: a node without content that keeps them together. A ghost is never
// found, walked through or counted; it is filled when its block comes back,
// and goes with the last of its children. So blocks may be added in any order.
// The root of a text is such a ghost.
type Index struct {
	cfg    IndexConfig
	nodes  chunks[node]
	free   Ref // removed nodes, by their next
	table  table
	leaves chunks[Ref] // nodes that Victim may choose, in no order
	roots  []rootRow
	rootBy map[ieg.BlockHash]uint32
	rootsF []uint32 // unused rows of roots
	random uint64

	blocks int
	tokens int64
	bytes  int64
}

// node is one cache line, without pointers.
type node struct {
	hash                      ieg.BlockHash
	parent, child, next, prev Ref
	chain                     Ref   // in the table's bucket
	leaf                      int32 // one more than its place in leaves; 0: none
	root                      uint32
	heat                      float32
	used                      int32 // ticks
	bytes                     uint32
	depth                     int32 // blocks before it; -1: a root
	n                         uint16
	flags                     uint8
}

const (
	flagGhost  = 1 << 7
	flagPinned = 1 << 6
	flagBits   = 1<<2 - 1
)

// tick is the unit of node.used.
const tick = 1 << 26

func toTick(t ieg.Time) int32 {
	return int32(min(max(t/tick, math.MinInt32), math.MaxInt32))
}

// rootRow counts the nodes of a root, ghosts included; it is used again when
// there are none.
type rootRow struct {
	hash  ieg.BlockHash
	nodes int
}

// NewIndex makes an empty index.
func NewIndex(cfg IndexConfig) *Index {
	if cfg.HalfLife <= 0 {
		cfg.HalfLife = HalfLife
	}
	x := &Index{cfg: cfg, table: newTable(), rootBy: map[ieg.BlockHash]uint32{}, random: cfg.Seed}
	x.nodes.push(node{}) // NoRef
	return x
}

func (x *Index) node(r Ref) *node { return x.nodes.at(int32(r)) }

// Len is the number of blocks, Tokens and Bytes their sums.
func (x *Index) Len() int { return x.blocks }

// Tokens is the number of tokens of all blocks.
func (x *Index) Tokens() int64 { return x.tokens }

// Bytes is the size of all blocks.
func (x *Index) Bytes() int64 { return x.bytes }

// Refs is one more than the greatest Ref in use: 1 ≤ ref < Refs visits all
// blocks by Has.
func (x *Index) Refs() Ref { return Ref(x.nodes.n) }

// Has tells whether ref is a block.
func (x *Index) Has(r Ref) bool {
	return r > NoRef && r < x.Refs() && x.node(r).n > 0
}

// Get finds a block by name.
func (x *Index) Get(h ieg.BlockHash) (Ref, bool) {
	r := x.lookup(&h)
	if r == NoRef || x.node(r).flags&flagGhost != 0 {
		return NoRef, false
	}
	return r, true
}

// HasRoot tells whether there is a block of a root.
func (x *Index) HasRoot(h ieg.BlockHash) bool {
	_, ok := x.rootBy[h]
	return ok
}

// Roots lists up to n roots of blocks, those known longest first as a rule.
func (x *Index) Roots(n int) []ieg.BlockHash {
	var list []ieg.BlockHash
	for i := range x.roots {
		if len(list) < n && x.roots[i].nodes > 0 {
			list = append(list, x.roots[i].hash)
		}
	}
	return list
}

// Entry is what is known of a block.
func (x *Index) Entry(r Ref) Entry {
	n := x.node(r)
	e := Entry{
		Hash: n.hash, Root: x.roots[n.root].hash, Start: n.depth * ieg.BlockTokens, N: int32(n.n),
		Bytes: int64(n.bytes), Heat: n.heat, Used: ieg.Time(n.used) * tick,
		Pinned: n.flags&flagPinned != 0, Bits: n.flags & flagBits,
	}
	if n.parent != NoRef {
		e.Parent = x.node(n.parent).hash
	}
	return e
}

// Parent is the block before r, NoRef when it is not here.
func (x *Index) Parent(r Ref) Ref {
	p := x.node(r).parent
	if p == NoRef || x.node(p).flags&flagGhost != 0 {
		return NoRef
	}
	return p
}

// Add adds a block. A block that is there already is left as it is: (ref,
// false). One that can't be part of a text is refused: (NoRef, false).
func (x *Index) Add(e Entry) (Ref, bool) {
	if !e.sound() {
		return NoRef, false
	}
	depth := e.Start / ieg.BlockTokens
	parent := x.lookup(&e.Parent)
	if parent != NoRef && !x.parentFits(parent, &e, depth) {
		return NoRef, false
	}
	r := x.lookup(&e.Hash)
	switch {
	case r == NoRef:
	case x.node(r).flags&flagGhost == 0:
		return r, false
	case x.node(r).depth != depth || e.N != ieg.BlockTokens || x.roots[x.node(r).root].hash != e.Root:
		return NoRef, false
	}
	if parent == NoRef {
		parent = x.newNode(e.Parent, e.Root, depth-1)
	}
	if r == NoRef {
		r = x.newNode(e.Hash, e.Root, depth)
	}
	x.fill(r, parent, &e)
	return r, true
}

// sound tells whether an entry is one of a text's blocks, by itself.
func (e *Entry) sound() bool {
	return e.N > 0 && e.N <= ieg.BlockTokens && e.Start >= 0 && e.Start%ieg.BlockTokens == 0 &&
		e.Bytes >= 0 && e.Bytes <= MaxBlockBytes && e.Hash != e.Parent && e.Hash != e.Root &&
		(e.Start == 0) == (e.Parent == e.Root)
}

// parentFits keeps the forest free of cycles: depths grow along each path.
func (x *Index) parentFits(parent Ref, e *Entry, depth int32) bool {
	p := x.node(parent)
	return p.depth == depth-1 && x.roots[p.root].hash == e.Root &&
		(p.flags&flagGhost != 0 || p.n == ieg.BlockTokens)
}

// newNode makes a ghost.
func (x *Index) newNode(h, root ieg.BlockHash, depth int32) Ref {
	n := node{hash: h, root: x.rootRef(root), depth: depth, flags: flagGhost}
	r := x.free
	if r != NoRef {
		x.free = x.node(r).next
		*x.node(r) = n
	} else {
		r = Ref(x.nodes.n)
		x.nodes.push(n)
	}
	x.tableAdd(r)
	return r
}

// fill makes a ghost a block.
func (x *Index) fill(r, parent Ref, e *Entry) {
	n := x.node(r)
	n.n, n.bytes = uint16(e.N), uint32(e.Bytes)
	n.heat, n.used = e.Heat, toTick(e.Used)
	n.flags = e.Bits & flagBits
	if e.Pinned {
		n.flags |= flagPinned
	}
	x.blocks++
	x.tokens += int64(e.N)
	x.bytes += e.Bytes
	n.parent = parent
	x.pushChild(r)
	x.setLeaf(parent)
	x.setLeaf(r)
}

// Remove removes a block; while others continue it, a ghost is left.
func (x *Index) Remove(r Ref) {
	n := x.node(r)
	x.blocks--
	x.tokens -= int64(n.n)
	x.bytes -= int64(n.bytes)
	parent := n.parent
	x.cutChild(r)
	n.n, n.bytes, n.flags = 0, 0, flagGhost
	x.setLeaf(r)
	x.dropGhost(r)
	x.setLeaf(parent)
	x.dropGhost(parent)
}

// dropGhost removes a ghost that keeps nothing together.
func (x *Index) dropGhost(r Ref) {
	n := x.node(r)
	if n.flags&flagGhost == 0 || n.child != NoRef {
		return
	}
	x.tableRemove(r)
	x.dropRootRef(n.root)
	*n = node{next: x.free}
	x.free = r
}

// pushChild puts r before the other children of its parent.
func (x *Index) pushChild(r Ref) {
	n := x.node(r)
	p := x.node(n.parent)
	n.prev, n.next = NoRef, p.child
	if p.child != NoRef {
		x.node(p.child).prev = r
	}
	p.child = r
}

// cutChild takes r out of the children of its parent.
func (x *Index) cutChild(r Ref) {
	n := x.node(r)
	if n.prev != NoRef {
		x.node(n.prev).next = n.next
	} else {
		x.node(n.parent).child = n.next
	}
	if n.next != NoRef {
		x.node(n.next).prev = n.prev
	}
	n.parent, n.prev, n.next = NoRef, NoRef, NoRef
}

// setLeaf puts a node into the leaves or takes it out, as its state says.
func (x *Index) setLeaf(r Ref) {
	n := x.node(r)
	is := n.child == NoRef && n.flags&(flagGhost|flagPinned) == 0
	switch {
	case is && n.leaf == 0:
		x.leaves.push(r)
		n.leaf = x.leaves.n
	case !is && n.leaf != 0:
		last := x.leaves.pop()
		if last != r {
			*x.leaves.at(n.leaf - 1) = last
			x.node(last).leaf = n.leaf
		}
		n.leaf = 0
	}
}

// rootRef counts one node more for a root.
func (x *Index) rootRef(h ieg.BlockHash) uint32 {
	i, ok := x.rootBy[h]
	if !ok {
		if k := len(x.rootsF); k > 0 {
			i, x.rootsF = x.rootsF[k-1], x.rootsF[:k-1]
		} else {
			i, x.roots = uint32(len(x.roots)), append(x.roots, rootRow{})
		}
		x.roots[i] = rootRow{hash: h}
		x.rootBy[h] = i
	}
	x.roots[i].nodes++
	return i
}

func (x *Index) dropRootRef(i uint32) {
	row := &x.roots[i]
	if row.nodes--; row.nodes == 0 {
		delete(x.rootBy, row.hash)
		*row = rootRow{}
		x.rootsF = append(x.rootsF, i)
	}
}

// Touch counts a use of a block and of all that leads to it, and makes it the
// first child of its parent.
func (x *Index) Touch(r Ref, now ieg.Time) {
	if n := x.node(r); n.prev != NoRef {
		parent := n.parent
		x.cutChild(r)
		n.parent = parent
		x.pushChild(r)
	}
	at := toTick(now)
	for ; r != NoRef; r = x.node(r).parent {
		n := x.node(r)
		n.heat = float32(x.decayed(n, at)) + 1
		n.used = max(n.used, at)
	}
}

// Pin makes a block never a victim, and so what leads to it; or ends that.
func (x *Index) Pin(r Ref, on bool) {
	n := x.node(r)
	n.flags &^= flagPinned
	if on {
		n.flags |= flagPinned
	}
	x.setLeaf(r)
}

// SetBits sets the owner's two bits of a block.
func (x *Index) SetBits(r Ref, bits uint8) {
	n := x.node(r)
	n.flags = n.flags&^flagBits | bits&flagBits
}

// Children are the blocks that continue the block or root of a name, the last
// added or touched first. The index may not change meanwhile.
func (x *Index) Children(h ieg.BlockHash) iter.Seq[Ref] {
	return func(yield func(Ref) bool) {
		r := x.lookup(&h)
		if r == NoRef {
			return
		}
		for r = x.node(r).child; r != NoRef && yield(r); r = x.node(r).next {
		}
	}
}

// Walk appends to path the longest chain of full blocks that tokens begin
// with, and tells how many tokens it covers. What of the next tokens is here
// in part is known to who knows the tokens of the Children of the last one.
func (x *Index) Walk(path []Ref, root ieg.BlockHash, tokens []ieg.Token) ([]Ref, int32) {
	var n int32
	at := NoRef
	for h := root; len(tokens)-int(n) >= ieg.BlockTokens; n += ieg.BlockTokens {
		h = Name(h, tokens[n:n+ieg.BlockTokens])
		if at = x.step(at, &h); at == NoRef {
			break
		}
		path = append(path, at)
	}
	return path, n
}

// Follow appends to path, which Walk or Follow began, the blocks of names as
// far as they are here. Who walks with names made before (Names) holds the
// index for a tenth of the time.
func (x *Index) Follow(path []Ref, names []ieg.BlockHash) []Ref {
	at := NoRef
	if len(path) > 0 {
		at = path[len(path)-1]
	}
	for i := range names {
		if at = x.step(at, &names[i]); at == NoRef {
			break
		}
		path = append(path, at)
	}
	return path
}

// step finds the full block h, which is likely the first child of from.
func (x *Index) step(from Ref, h *ieg.BlockHash) Ref {
	r := NoRef
	if from != NoRef {
		r = x.node(from).child
	}
	if r == NoRef || x.node(r).hash != *h {
		r = x.lookup(h)
	}
	if r == NoRef || x.node(r).n != ieg.BlockTokens {
		return NoRef
	}
	return r
}
