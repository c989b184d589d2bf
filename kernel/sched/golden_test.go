package sched_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ieg"
	"ieg/kernel/cost"
	"ieg/kernel/sched"
)

// The scripts give times in milliseconds: of any step, of each decoding
// sequence in it, of each prompt token.
func chunk(t *testing.T, d *datadriven.TestData) string {
	var base, seq, token float64
	decodes, class, past, ubatch, most := 0, "P0", 0, 512, 2048
	for name, into := range map[string]any{"base": &base, "seq": &seq, "token": &token, "decodes": &decodes, "class": &class, "past": &past, "ubatch": &ubatch, "most": &most} {
		if f, ok := into.(*float64); ok {
			var s string
			d.ScanArgs(t, name, &s)
			if _, err := fmt.Sscan(s, f); err != nil {
				t.Fatal(err)
			}
			continue
		}
		d.MaybeScanArgs(t, name, into)
	}
	s := cost.Speed{Base: base / 1e3, Seq: seq / 1e3, Prefill: token / 1e3, Attended: token / 1e3 / 4096}
	l := sched.Load{Step: cost.Step{Seqs: int32(decodes)}, Class: ieg.Class(class[1] - '0'), Past: int32(past), UBatch: ubatch}
	n := sched.DefaultPace().Chunk(s, l, most)
	alone := sched.Seconds(s.Step(l.Step))
	l.Prefill, l.Attended = int32(n), cost.Attended(int32(past), int32(n))
	with := sched.Seconds(s.Step(l.Step))
	if decodes == 0 {
		return fmt.Sprintf("%d tokens, a step of %s\n", n, with.Round(100*time.Microsecond))
	}
	return fmt.Sprintf("%d tokens, the streams' step goes from %s to %s\n", n, alone.Round(100*time.Microsecond), with.Round(100*time.Microsecond))
}

// order sorts keys, one a line: name, class, deadline in ms (0: none), type,
// arrival in ms.
func order(t *testing.T, d *datadriven.TestData) string {
	var q sched.Queue
	names := map[ieg.SeqID]string{}
	for i, line := range strings.Split(d.Input, "\n") {
		var name, class, typ string
		var deadline, arrival int
		if _, err := fmt.Sscan(line, &name, &class, &deadline, &typ, &arrival); err != nil {
			t.Fatal(err)
		}
		k := sched.Key{Class: ieg.Class(class[1] - '0'), Deadline: ieg.Never, Arrival: ieg.Time(arrival), Seq: ieg.SeqID(i + 1)}
		if deadline > 0 {
			k.Deadline = ieg.Time(deadline)
		}
		if err := k.Type.UnmarshalText([]byte(typ)); err != nil {
			t.Fatal(err)
		}
		names[k.Seq] = name
		q.Push(k)
	}
	var out []string
	for i := range q.Len() {
		out = append(out, names[q.At(i).Seq])
	}
	return strings.Join(out, " ") + "\n"
}

func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "chunk":
				return chunk(t, d)
			case "order":
				return order(t, d)
			}
			t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

// A chunk is never more than there is room for, at least the least, and does
// not shrink when engines get faster.
func TestChunkBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := sched.DefaultPace()
	for range 20_000 {
		s := cost.Speed{Base: rng.Float64() * 0.1, Seq: rng.Float64() * 0.01, Prefill: rng.Float64() * 0.01, KVToken: rng.Float64() * 1e-6, Attended: rng.Float64() * 1e-7}
		l := sched.Load{Step: cost.Step{Seqs: rng.Int32N(300), KVTokens: rng.Int64N(1e6)}, Class: ieg.Class(rng.IntN(3)), Past: rng.Int32N(1e5), UBatch: rng.IntN(1024)}
		most := rng.IntN(4096)
		n := p.Chunk(s, l, most)
		if n > most || n < min(most, sched.ChunkTokensMin) && l.Seqs > 0 || n < 0 {
			t.Fatalf("%d of at most %d: %+v, %+v", n, most, s, l)
		}
		faster := s
		faster.Prefill, faster.Attended = s.Prefill/2, s.Attended/2
		if m := p.Chunk(faster, l, most); m < n {
			t.Fatalf("%d tokens, twice as fast %d: %+v, %+v", n, m, s, l)
		}
	}
}

func TestQueueAgainstSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var q sched.Queue
	var twin []sched.Key
	for i := range 20_000 {
		if rng.IntN(2) == 0 || len(twin) == 0 {
			k := sched.Key{Class: ieg.Class(rng.IntN(3)), Deadline: ieg.Time(rng.IntN(4)), Type: ieg.NodeType(rng.IntN(5)), Arrival: ieg.Time(rng.IntN(20)), Seq: ieg.SeqID(i)}
			q.Push(k)
			twin = append(twin, k)
			slices.SortFunc(twin, sched.Key.Compare)
		} else {
			j := rng.IntN(len(twin))
			if !q.Remove(twin[j]) || q.Remove(twin[j]) {
				t.Fatalf("key %+v is not removed once", twin[j])
			}
			twin = slices.Delete(twin, j, j+1)
		}
		if len(twin) > 64 {
			for _, k := range twin[32:] {
				q.Remove(k)
			}
			twin = twin[:32]
		}
		if q.Len() != len(twin) {
			t.Fatalf("%d keys, the twin has %d", q.Len(), len(twin))
		}
		for j, k := range twin {
			if q.At(j) != k {
				t.Fatalf("key %d is %+v, not %+v", j, q.At(j), k)
			}
		}
	}
}
