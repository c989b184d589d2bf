package sim

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ieg/kernel/record"
)

func call(t *testing.T, want int, args ...string) (out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	if code := Main(args, &o, &e); code != want {
		t.Fatalf("%q exits with %d, not %d: %s%s", args, code, want, o.String(), e.String())
	}
	return o.String(), e.String()
}

func TestMainIsDeterministic(t *testing.T) {
	runOnce := func() Report {
		out, _ := call(t, 0, "--requests", "60", "--rate", "8", "--layout", "unified", "--faults", "--check", "--json", "--seed", "5")
		var r Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		r.Wall, r.Speed = 0, 0
		return r
	}
	a := runOnce()
	if b := runOnce(); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("equal flags, unequal runs:\n%+v\n%+v", a, b)
	}
	if a.Requests != 60 || a.TTFT.P50 <= 0 || a.ITL.P99 <= 0 || a.Utilisation <= 0 || a.HitRatio <= 0 {
		t.Errorf("%+v", a)
	}
}

func TestMainTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	for i := range 20 {
		fmt.Fprintf(z, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [1, 2, %d]}`+"\n", i*500, 1400, 5+i, 100+i)
	}
	if z.Close() != nil || f.Close() != nil {
		t.Fatal("the trace can't be written")
	}
	out, _ := call(t, 0, "--trace", path, "--requests", "0", "--json", "--engines", "2", "--check")
	var r Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Finished != 20 || r.GeneratedTokens != 20*5+190 {
		t.Errorf("%d requests finished with %d tokens", r.Finished, r.GeneratedTokens)
	}
	// Each engine computes the two shared blocks once.
	if most := int64(2*1024 + 20*(1400-1024)); r.PromptTokens != 20*1400 || r.PrefilledTokens > most {
		t.Errorf("%d of %d prompt tokens were computed, at most %d are unique to an engine", r.PrefilledTokens, r.PromptTokens, most)
	}
}

func TestMainRecordsAndReplays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.iegrec")
	call(t, 0, "--requests", "40", "--rate", "10", "--record", path)
	if out, _ := call(t, 0, "--replay", path); !strings.Contains(out, "all as recorded") {
		t.Error(out)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[:len(b)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs := call(t, 1, "--replay", path); !strings.Contains(errs, "cut short") {
		t.Error(errs)
	}
}

func TestMainRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"--requests", "0"}, {"--layout", "round"}, {"--engines", "0"}, {"--slots", "9999"}, {"--cells", "5"}, {"extra"}, {"--nonsense"},
		{"--prefill", "0"}, {"--context", "1"}, {"--models", "3"},
	} {
		if _, errs := call(t, 2, args...); errs == "" {
			t.Errorf("%q is refused without a word", args)
		}
	}
	call(t, 1, "--trace", filepath.Join(t.TempDir(), "none"))
	call(t, 1, "--replay", filepath.Join(t.TempDir(), "none"))
	call(t, 0, "--help")
}

// Recordings of runs with faults replay, whole and redacted.
func TestRecordings(t *testing.T) {
	seeds(t, func(seed uint64) error {
		if seed%24 != 0 {
			return nil
		}
		cfg := scene(seed)
		cfg.Check, cfg.Verify = false, false
		plague(&cfg, rand.New(rand.NewPCG(seed, 4)))
		rec, err := record.New(record.Config{SegmentAge: 1e9, Segments: 1000, Queue: 1 << 16})
		if err != nil {
			return err
		}
		cfg.Before, cfg.Observe = rec.Before, rec.Observe
		if _, err := run(cfg); err != nil {
			return err
		}
		if err := rec.Close(); err != nil {
			return err
		}
		return replayAll(rec)
	})
}

func replayAll(rec *record.Recorder) error {
	segs, err := rec.Segments()
	if err != nil {
		return err
	}
	if rec.Lost() > 0 || len(segs) == 0 {
		return fmt.Errorf("%d events lost, %d segments", rec.Lost(), len(segs))
	}
	for _, s := range segs {
		for _, redact := range []bool{false, true} {
			in, err := rec.Open(s.Name, redact)
			if err != nil {
				return err
			}
			rep, err := record.Replay(in)
			if err != nil || !rep.Complete {
				return fmt.Errorf("segment %s, redacted %t: %+v: %w", s.Name, redact, rep, err)
			}
			if _, err := io.Copy(io.Discard, in); err != nil {
				return err
			}
			in.Close()
		}
	}
	return nil
}
