package kv_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ieg"
	"ieg/memory/kv"
)

// indexScript names blocks by words: a root, then a letter a block.
type indexScript struct {
	x   *kv.Index
	now ieg.Time
}

func word(s string) (h ieg.BlockHash) {
	copy(h[:], s)
	return h
}

func (s *indexScript) add(d *datadriven.TestData, t *testing.T) string {
	var out strings.Builder
	for line := range strings.Lines(d.Input) {
		f := strings.Fields(line)
		e := kv.Entry{Hash: word(f[0]), Parent: word(f[0][:len(f[0])-1]), Root: word(f[0][:1]),
			Start: int32(len(f[0])-2) * ieg.BlockTokens, N: ieg.BlockTokens, Bytes: 1000, Heat: 1, Used: s.now}
		for _, o := range f[1:] {
			var err error
			switch o[:2] {
			case "n=":
				_, err = fmt.Sscan(o[2:], &e.N)
			case "b=":
				_, err = fmt.Sscan(o[2:], &e.Bytes)
			case "s=":
				_, err = fmt.Sscan(o[2:], &e.Start)
			}
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		if ref, added := s.x.Add(e); ref == kv.NoRef {
			fmt.Fprintf(&out, "%s: refused\n", f[0])
		} else if !added {
			fmt.Fprintf(&out, "%s: known\n", f[0])
		}
	}
	return out.String()
}

func (s *indexScript) show(w *strings.Builder, h ieg.BlockHash, depth int) {
	for c := range s.x.Children(h) {
		e := s.x.Entry(c)
		fmt.Fprintf(w, "%*s%s n=%d b=%d heat %.2f value %.3g", 2*depth, "", strings.TrimRight(string(e.Hash[:]), "\x00"),
			e.N, e.Bytes, s.x.Heat(e.Hash, s.now), s.x.Value(c, s.now))
		if e.Pinned {
			w.WriteString(" pinned")
		}
		w.WriteString("\n")
		s.show(w, e.Hash, depth+1)
	}
}

func (s *indexScript) each(d *datadriven.TestData, f func(kv.Ref)) string {
	var out strings.Builder
	for name := range strings.FieldsSeq(d.Input) {
		if ref, ok := s.x.Get(word(name)); ok {
			f(ref)
		} else {
			fmt.Fprintf(&out, "%s: missing\n", name)
		}
	}
	return out.String()
}

func (s *indexScript) run(t *testing.T, d *datadriven.TestData) string {
	out := ""
	switch d.Cmd {
	case "new":
		cfg := kv.IndexConfig{HalfLife: time.Minute}
		if d.HasArg("lru") {
			cfg.Policy = kv.LRU
		}
		s.x, s.now = kv.NewIndex(cfg), 0
	case "wait":
		var span string
		d.ScanArgs(t, "span", &span)
		dur, err := time.ParseDuration(span)
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(dur)
	case "add":
		out = s.add(d, t)
	case "remove":
		out = s.each(d, s.x.Remove)
	case "touch":
		out = s.each(d, func(r kv.Ref) { s.x.Touch(r, s.now) })
	case "pin":
		out = s.each(d, func(r kv.Ref) { s.x.Pin(r, !d.HasArg("off")) })
	case "victims":
		var b strings.Builder
		for r := s.x.Victim(s.now, nil); r != kv.NoRef; r = s.x.Victim(s.now, nil) {
			h := s.x.Entry(r).Hash
			fmt.Fprintf(&b, "%s\n", strings.TrimRight(string(h[:]), "\x00"))
			s.x.Remove(r)
		}
		out = b.String()
	case "show":
		var b strings.Builder
		for name := range strings.FieldsSeq(d.Input) {
			s.show(&b, word(name), 0)
		}
		fmt.Fprintf(&b, "%d blocks, %d tokens, %d bytes\n", s.x.Len(), s.x.Tokens(), s.x.Bytes())
		out = b.String()
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	if err := s.x.Check(); err != nil {
		t.Fatalf("%s: after %s: %v", d.Pos, d.Cmd, err)
	}
	return out
}

func TestIndexGolden(t *testing.T) {
	s := &indexScript{}
	datadriven.RunTest(t, "testdata/index", func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
}

func TestIndexWalk(t *testing.T) {
	x := kv.NewIndex(kv.IndexConfig{})
	root, tokens := testRoot(), text(0)[:5*ieg.BlockTokens+7]
	names := kv.Names(nil, root, tokens)
	parent := root
	for i, h := range names {
		e := kv.Entry{Hash: h, Parent: parent, Root: root, Start: int32(i) * ieg.BlockTokens, N: ieg.BlockTokens, Bytes: 1}
		if parent = h; i != 3 { // a hole
			x.Add(e)
		}
	}
	for _, c := range []struct {
		tokens []ieg.Token
		want   int
	}{{nil, 0}, {tokens[:255], 0}, {tokens[:256], 1}, {tokens[:700], 2}, {tokens, 3}, {tokens[1:], 0}} {
		path, n := x.Walk(nil, root, c.tokens)
		if len(path) != c.want || int(n) != c.want*ieg.BlockTokens {
			t.Errorf("%d tokens: %d blocks, %d tokens, not %d blocks", len(c.tokens), len(path), n, c.want)
		}
		for i, r := range path {
			if x.Entry(r).Hash != names[i] {
				t.Errorf("%d tokens: block %d is another one", len(c.tokens), i)
			}
		}
	}
	first := x.Follow(nil, names[:2])
	if all := x.Follow(first, names[2:]); len(first) != 2 || len(all) != 3 {
		t.Errorf("in two parts %d and %d blocks, not 2 and 3", len(first), len(all))
	}
	if path, n := x.Walk(nil, kv.Root("model", "other"), tokens); len(path) != 0 || n != 0 {
		t.Errorf("another root finds %d blocks", n)
	}
}

// In a big index the victim is nearly the worst, and refused ones are not
// taken.
func TestIndexVictimOfMany(t *testing.T) {
	x := kv.NewIndex(kv.IndexConfig{Policy: kv.LRU, Seed: 7})
	const many = 10_000
	root := word("r")
	for i := range many {
		x.Add(kv.Entry{Hash: word(fmt.Sprint("r", i)), Parent: root, Root: root, N: 7, Bytes: 1, Used: ieg.Time(i) * 1e9})
	}
	const late = ieg.Time(many/2) * 1e9
	for range 100 {
		r := x.Victim(0, nil)
		if used := x.Entry(r).Used; used > many/5*1e9 {
			t.Errorf("the victim was used at %d of %d", used/1e9, many)
		}
		r = x.Victim(0, func(r kv.Ref) bool { return x.Entry(r).Used >= late })
		if used := x.Entry(r).Used; used < late || used > late+late/2 {
			t.Errorf("the victim was used at %d; those before %d are refused", used/1e9, late/1e9)
		}
	}
	if r := x.Victim(0, func(kv.Ref) bool { return false }); r != kv.NoRef {
		t.Errorf("all are refused, %d is the victim", r)
	}
}
