package gbnf

import "unicode/utf8"

// State is what the text so far means to the grammar.
type State struct {
	g    *Grammar
	cur  set
	over bool

	frames []frame // frame 0 is the end of the root
	intern map[frame]int32

	// Working memory.
	next, spare set
	work        []stack
	seen        []stack
	seenMap     map[stack]struct{}
	visits      int
	depths      []set
}

// set is a set of positions, and the bytes of a character begun.
type set struct {
	stacks []stack
	part   rune
	need   int8 // bytes missing
	size   int8 // bytes of the whole character
}

// stack is a position: a node that is a character, or done, and where to go
// on when its sequence ends.
type stack struct{ pos, frame int32 }

// done is the position after the whole grammar.
const done = -1

// frame is a return chain.
type frame struct{ ret, parent int32 }

// NewState is the state before any text.
func (g *Grammar) NewState() *State {
	s := &State{g: g, intern: map[frame]int32{}, seenMap: map[stack]struct{}{}}
	s.frames = append(s.frames, frame{})
	s.begin()
	for _, a := range g.rules[g.root] {
		s.work = append(s.work, stack{a, 0})
	}
	s.cur.stacks = s.closure(s.cur.stacks)
	return s
}

// Overflow tells that matching the grammar took too much memory; the state
// accepts nothing more.
func (s *State) Overflow() bool { return s.over }

// Complete tells that the text so far is a whole text of the grammar.
func (s *State) Complete() bool {
	if s.cur.need > 0 || s.over {
		return false
	}
	for _, k := range s.cur.stacks {
		if k.pos == done {
			return true
		}
	}
	return false
}

// Ended tells that it is complete and nothing can follow.
func (s *State) Ended() bool { return s.Complete() && len(s.cur.stacks) == 1 }

// Accepts tells whether the bytes may follow.
func (s *State) Accepts(piece []byte) bool {
	if s.over {
		return false
	}
	s.spare.copy(&s.cur)
	ok := s.run(&s.spare, piece)
	if s.over { // the look-ahead went too far, not the text
		s.over = false
		s.collect()
	}
	return ok
}

// Advance takes the bytes in; false if they may not follow, and then the state
// is unchanged.
func (s *State) Advance(piece []byte) bool {
	s.spare.copy(&s.cur)
	if !s.run(&s.spare, piece) {
		return false
	}
	s.cur, s.spare = s.spare, s.cur
	if len(s.frames) > maxFrames {
		s.collect()
	}
	return true
}

func (d *set) copy(from *set) {
	d.stacks = append(d.stacks[:0], from.stacks...)
	d.part, d.need, d.size = from.part, from.need, from.size
}

// run moves x over the bytes.
func (s *State) run(x *set, piece []byte) bool {
	if len(piece) == 0 || s.over {
		return false
	}
	for _, b := range piece {
		if !s.step(x, b) {
			return false
		}
	}
	return true
}

// step moves x over one byte; false if it may not follow.
func (s *State) step(x *set, b byte) bool {
	switch {
	case x.need > 0:
		if b&0xc0 != 0x80 {
			return false
		}
		x.part = x.part<<6 | rune(b&0x3f)
		x.need--
	case b < 0x80:
		x.part, x.size = rune(b), 1
	case b >= 0xc2 && b < 0xe0:
		x.part, x.need, x.size = rune(b&0x1f), 1, 2
	case b >= 0xe0 && b < 0xf0:
		x.part, x.need, x.size = rune(b&0x0f), 2, 3
	case b >= 0xf0 && b < 0xf5:
		x.part, x.need, x.size = rune(b&0x07), 3, 4
	default:
		return false
	}
	if x.need > 0 {
		return s.mayComplete(x)
	}
	if r := x.part; x.size > 1 && (utf8.RuneLen(r) != int(x.size)) {
		return false
	}
	s.begin()
	for _, k := range x.stacks {
		if k.pos != done && s.g.classes[s.g.code[k.pos].arg].has(x.part) {
			s.work = append(s.work, stack{k.pos + 1, k.frame})
		}
	}
	s.next.stacks = s.closure(s.next.stacks[:0])
	x.stacks, s.next.stacks = s.next.stacks, x.stacks
	return len(x.stacks) > 0 && !s.over
}

// smallest is the least character of each size.
var smallest = [...]rune{0, 0, 0x80, 0x800, 0x10000}

// mayComplete tells whether a character that begins so may follow.
func (s *State) mayComplete(x *set) bool {
	lo := x.part << (6 * x.need)
	hi := min(lo|(1<<(6*x.need)-1), lastRune)
	lo = max(lo, smallest[x.size])
	if lo > hi || lo >= 0xd800 && hi <= 0xdfff {
		return false
	}
	for _, k := range x.stacks {
		if k.pos != done && s.g.classes[s.g.code[k.pos].arg].meets(lo, hi) {
			return true
		}
	}
	return false
}

func (s *State) begin() {
	s.work, s.seen = s.work[:0], s.seen[:0]
	if len(s.seenMap) > 0 {
		clear(s.seenMap)
	}
}

// closure expands the positions in work to those before characters.
func (s *State) closure(out []stack) []stack {
	code := s.g.code
	for len(s.work) > 0 {
		k := s.work[len(s.work)-1]
		s.work = s.work[:len(s.work)-1]
		if !s.visit(k) {
			continue
		}
		n := code[k.pos]
		switch n.kind {
		case nodeChar:
			out = append(out, k)
		case nodeEnd:
			if k.frame == 0 {
				out = append(out, stack{done, 0})
				continue
			}
			f := s.frames[k.frame]
			s.work = append(s.work, stack{f.ret, f.parent})
		case nodeRef:
			to := k.frame
			if code[k.pos+1].kind != nodeEnd {
				to = s.frame(frame{k.pos + 1, k.frame})
			}
			for _, a := range s.g.rules[n.arg] {
				s.work = append(s.work, stack{a, to})
			}
		}
		if len(out) > maxStacks || len(s.frames) > maxLive || len(s.seenMap) > maxVisits {
			s.over = true
			s.work = s.work[:0]
			return out[:0]
		}
	}
	return dedupe(out)
}

// dedupe drops all but one of the done positions.
func dedupe(out []stack) []stack {
	n, had := 0, false
	for _, k := range out {
		if k.pos == done {
			if had {
				continue
			}
			had = true
		}
		out[n] = k
		n++
	}
	return out[:n]
}

// visit notes a position; false if it was noted before.
func (s *State) visit(k stack) bool {
	const few = 32
	s.visits++
	if len(s.seen) < few {
		for _, x := range s.seen {
			if x == k {
				return false
			}
		}
		s.seen = append(s.seen, k)
		return true
	}
	if len(s.seenMap) == 0 {
		for _, x := range s.seen {
			s.seenMap[x] = struct{}{}
		}
	}
	if _, ok := s.seenMap[k]; ok {
		return false
	}
	s.seenMap[k] = struct{}{}
	return true
}

// frame numbers a return chain.
func (s *State) frame(f frame) int32 {
	if id, ok := s.intern[f]; ok {
		return id
	}
	id := int32(len(s.frames))
	s.frames, s.intern[f] = append(s.frames, f), id
	return id
}

// collect drops the chains that no position of cur needs.
func (s *State) collect() {
	old := s.frames
	s.frames = append([]frame(nil), frame{})
	clear(s.intern)
	moved := map[int32]int32{0: 0}
	for i, k := range s.cur.stacks {
		var chain []int32
		for f := k.frame; ; f = old[f].parent {
			if _, ok := moved[f]; ok {
				break
			}
			chain = append(chain, f)
		}
		for j := len(chain) - 1; j >= 0; j-- {
			f := chain[j]
			moved[f] = s.frame(frame{old[f].ret, moved[old[f].parent]})
		}
		s.cur.stacks[i].frame = moved[k.frame]
	}
}
