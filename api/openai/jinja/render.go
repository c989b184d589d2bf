package jinja

import (
	"strings"
	"time"
)

// Vars are the names that a template sees.
type Vars map[string]Value

// Render evaluates the template. now is what strftime_now prints. Errors are
// ErrRaised, ErrRender or ErrLimit.
func (t *Template) Render(vars Vars, now time.Time) (text string, err error) {
	defer caught(&err)
	var out strings.Builder
	r := &run{out: &out, now: now}
	f := &frame{vars: make(map[string]Value, len(vars)+8)}
	for k, v := range vars {
		f.vars[k] = v
	}
	t.body.exec(r, f)
	return out.String(), nil
}

// run is the state of one render: where text goes and what was used up.
type run struct {
	out   *strings.Builder
	now   time.Time
	steps int
	bytes int
	depth int
}

// step charges n units of work.
func (r *run) step(n int) {
	if r.steps += n; r.steps > RenderSteps {
		fail(ErrLimit, "the template needs more than %d steps", RenderSteps)
	}
}

// made charges n bytes of new text.
func (r *run) made(n int) {
	if r.bytes += n; r.bytes > RenderBytes {
		fail(ErrLimit, "the template makes more than %d bytes", RenderBytes)
	}
}

func (r *run) write(s string) {
	if r.out.Len()+len(s) > OutputBytes {
		fail(ErrLimit, "output longer than %d bytes", OutputBytes)
	}
	r.made(len(s))
	r.out.WriteString(s)
}

// capture runs a body and returns what it wrote.
func (r *run) capture(body block, f *frame) string {
	var b strings.Builder
	saved := r.out
	r.out = &b
	body.exec(r, f)
	r.out = saved
	return b.String()
}

// nested guards recursion at run time; it returns its own undoing.
func (r *run) nested() func() {
	if r.depth++; r.depth > RenderDepth {
		fail(ErrLimit, "macros or loops nested deeper than %d", RenderDepth)
	}
	return func() { r.depth-- }
}

// frame is one scope. Loops, macros and with blocks open one; if does not.
type frame struct {
	vars   map[string]Value
	parent *frame
}

func (f *frame) child() *frame { return &frame{parent: f} }

func (f *frame) set(name string, v Value) {
	if f.vars == nil {
		f.vars = make(map[string]Value, 4)
	}
	f.vars[name] = v
}

func (f *frame) get(name string) Value {
	for s := f; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			return v
		}
	}
	if g, ok := globals[name]; ok {
		return g
	}
	return Undefined{name}
}

func (b block) exec(r *run, f *frame) signal {
	for _, s := range b {
		r.step(1)
		if sig := s.exec(r, f); sig != goOn {
			return sig
		}
	}
	return goOn
}

func (s textStmt) exec(r *run, _ *frame) signal {
	r.write(s.s)
	return goOn
}

func (s outputStmt) exec(r *run, f *frame) signal {
	r.write(r.text(s.x.eval(r, f)))
	return goOn
}

func (s doStmt) exec(r *run, f *frame) signal {
	s.x.eval(r, f)
	return goOn
}

func (s signalStmt) exec(*run, *frame) signal { return s.s }

func (s *ifStmt) exec(r *run, f *frame) signal {
	for i, t := range s.tests {
		if truthy(t.eval(r, f)) {
			return s.bodies[i].exec(r, f)
		}
	}
	return s.other.exec(r, f)
}

func (s *setStmt) exec(r *run, f *frame) signal {
	v := s.x.eval(r, f)
	if len(s.targets) == 1 {
		assign(f, s.targets[0], v)
		return goOn
	}
	items := r.unpack(v, len(s.targets))
	for i, t := range s.targets {
		assign(f, t, items[i])
	}
	return goOn
}

func assign(f *frame, t target, v Value) {
	if t.attr == "" {
		f.set(t.name, v)
		return
	}
	ns, ok := f.get(t.name).(*namespace)
	if !ok {
		fail(ErrRender, "%s is no namespace", t.name)
	}
	ns.d.Set(t.attr, v)
}

func (s *setBlockStmt) exec(r *run, f *frame) signal {
	var v Value = r.capture(s.body, f.child())
	for i := range s.filters {
		v = s.filters[i].apply(r, f, v)
	}
	assign(f, s.to, v)
	return goOn
}

func (s *filterBlockStmt) exec(r *run, f *frame) signal {
	var v Value = r.capture(s.body, f.child())
	for i := range s.filters {
		v = s.filters[i].apply(r, f, v)
	}
	r.write(r.text(v))
	return goOn
}

func (s *withStmt) exec(r *run, f *frame) signal {
	c := f.child()
	for i, n := range s.names {
		c.set(n, s.vals[i].eval(r, f))
	}
	return s.body.exec(r, c)
}

func (s *macroStmt) exec(_ *run, f *frame) signal {
	f.set(s.name, s.bind(f))
	return goOn
}

// bind makes the macro callable; it sees the scope of its definition.
func (s *macroStmt) bind(f *frame) *callable {
	return &callable{s.name, func(r *run, a args) Value {
		defer r.nested()()
		c := f.child()
		for i, p := range s.params {
			v := a.at(i, p, Undefined{p})
			if isUndefined(v) {
				if d := i - (len(s.params) - len(s.defaults)); d >= 0 {
					v = s.defaults[d].eval(r, c)
				}
			}
			c.set(p, v)
		}
		if len(a.pos) > len(s.params) {
			c.set("varargs", &List{Items: a.pos[len(s.params):], tuple: true})
		}
		if a.kw != nil {
			for i, k := range a.kw.keys {
				if k == "caller" {
					c.set(k, a.kw.vals[a.kw.keys[i]])
				}
			}
			c.set("kwargs", a.kw)
		}
		return r.capture(s.body, c)
	}}
}

func (s *callBlockStmt) exec(r *run, f *frame) signal {
	fn, a := s.call.prepare(r, f)
	if a.kw == nil {
		a.kw = NewDict()
	}
	a.kw.Set("caller", s.macro.bind(f))
	r.write(r.text(r.call(fn, a)))
	return goOn
}
