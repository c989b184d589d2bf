package jinja

// loopVar is the "loop" object of a for block.
type loopVar struct {
	items   []Value
	i       int
	depth   int // 1 in the outermost
	changed Value
	again   *callable // of a recursive loop
}

func (l *loopVar) attr(r *run, name string) Value {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.i + 1)
	case "index0":
		return int64(l.i)
	case "revindex":
		return int64(n - l.i)
	case "revindex0":
		return int64(n - l.i - 1)
	case "first":
		return l.i == 0
	case "last":
		return l.i == n-1
	case "length":
		return int64(n)
	case "depth":
		return int64(l.depth)
	case "depth0":
		return int64(l.depth - 1)
	case "previtem":
		if l.i > 0 {
			return l.items[l.i-1]
		}
	case "nextitem":
		if l.i+1 < n {
			return l.items[l.i+1]
		}
	case "cycle":
		i := l.i
		return &callable{"cycle", func(_ *run, a args) Value {
			if len(a.pos) == 0 {
				fail(ErrRender, "loop.cycle needs values")
			}
			return a.pos[i%len(a.pos)]
		}}
	case "changed":
		return &callable{"changed", func(r *run, a args) Value {
			v := &List{Items: a.pos}
			same := l.changed != nil && r.equal(l.changed, v)
			l.changed = v
			return !same
		}}
	}
	return Undefined{"loop." + name}
}

func (s *forStmt) exec(r *run, f *frame) signal {
	s.iterate(r, f, s.in.eval(r, f), 1)
	return goOn
}

func (s *forStmt) iterate(r *run, f *frame, in Value, depth int) {
	items := r.items(in)
	if s.filter != nil {
		items = s.keep(r, f, items)
	}
	if len(items) == 0 {
		s.other.exec(r, f)
		return
	}
	loop := &loopVar{items: items, depth: depth}
	if s.recursive {
		loop.again = &callable{"loop", func(r *run, a args) Value {
			defer r.nested()()
			return r.capture(block{again{s, a.at(0, "iterable", nil), depth + 1}}, f)
		}}
	}
	for i, it := range items {
		r.step(1)
		loop.i = i
		c := f.child()
		c.set("loop", loop)
		s.bindTargets(r, c, it)
		if s.body.exec(r, c) == doBreak {
			return
		}
	}
}

// again runs a recursive loop on new items, into the captured output.
type again struct {
	s     *forStmt
	in    Value
	depth int
}

func (a again) exec(r *run, f *frame) signal {
	a.s.iterate(r, f, a.in, a.depth)
	return goOn
}

func (s *forStmt) keep(r *run, f *frame, items []Value) []Value {
	var kept []Value
	for _, it := range items {
		c := f.child()
		s.bindTargets(r, c, it)
		if truthy(s.filter.eval(r, c)) {
			kept = append(kept, it)
		}
	}
	return kept
}

func (s *forStmt) bindTargets(r *run, c *frame, it Value) {
	if len(s.targets) == 1 {
		c.set(s.targets[0], it)
		return
	}
	for i, v := range r.unpack(it, len(s.targets)) {
		c.set(s.targets[i], v)
	}
}

// unpack splits a value for several targets.
func (r *run) unpack(v Value, n int) []Value {
	items := r.items(v)
	if len(items) != n {
		fail(ErrRender, "can't unpack %d values into %d names", len(items), n)
	}
	return items
}

// items lists what iterating over v gives; undefined gives nothing.
func (r *run) items(v Value) []Value {
	switch v := v.(type) {
	case *List:
		r.step(len(v.Items))
		return v.Items
	case *Dict:
		r.step(len(v.keys))
		out := make([]Value, len(v.keys))
		for i, k := range v.keys {
			out[i] = k
		}
		return out
	case string:
		r.step(len(v))
		var out []Value
		for _, c := range v {
			out = append(out, string(c))
		}
		return out
	case Undefined:
		return nil
	}
	fail(ErrRender, "%s can't be iterated over", typeName(v))
	return nil
}
