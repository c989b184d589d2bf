package nvme

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"ieg"
	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
)

var crashRounds = flag.Int("crash-rounds", 20, "how often the crash test kills a process that writes")

func crashConfig(dir string) Config {
	return Config{Dir: dir, FileBytes: 512 << 10}
}

// crashItem is block n of the crash test.
func crashItem(n uint64) tier.Item {
	r := rand.New(rand.NewPCG(n, 1))
	return tiertest.Make(n, 1+r.Int64N(150_000))
}

// crashBlock is its block without tokens, made once.
func crashBlock(n uint64) ieg.Block {
	if b, known := crashBlocks[n]; known {
		return b
	}
	b := crashItem(n).Block
	b.Tokens = nil
	crashBlocks[n] = b
	return b
}

var crashBlocks = map[uint64]ieg.Block{}

// crashChild puts and deletes blocks until it is killed, and says so on its
// output: "b" before a Put of a block, "p" after it; "d" before a Delete, "D"
// after it.
func crashChild(dir string) error {
	n, err := strconv.ParseUint(os.Getenv(fromEnv), 10, 64)
	if err != nil {
		return err
	}
	s, err := Open(crashConfig(dir))
	if err != nil {
		return err
	}
	ctx, r := context.Background(), rand.New(rand.NewPCG(n, 2))
	var known []uint64
	tell := func(what string, ns []uint64) {
		var b strings.Builder
		for _, n := range ns {
			fmt.Fprintf(&b, "%s %d\n", what, n)
		}
		os.Stdout.WriteString(b.String())
	}
	for {
		var items []tier.Item
		var ns []uint64
		for range 1 + r.IntN(6) {
			items, ns = append(items, crashItem(n)), append(ns, n)
			n++
		}
		tell("b", ns)
		if err := s.Put(ctx, items); err != nil {
			return err
		}
		tell("p", ns)
		known = append(known, ns...)
		r.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
		k := min(len(known), r.IntN(8))
		if len(known) > 30 {
			k = 10
		}
		var hs []ieg.BlockHash
		for _, n := range known[:k] {
			hs = append(hs, crashItem(n).Block.Hash)
		}
		tell("d", known[:k])
		if err := s.Delete(ctx, hs); err != nil {
			return err
		}
		tell("D", known[:k])
		known = known[k:]
	}
}

// fate says what is known of a block.
type fate byte

const (
	stored  fate = 'p' // must be there
	deleted fate = 'D' // must not be there
	// 'b', 'd': a Put or Delete was on its way
)

// TestCrash kills a process that writes, at any moment, and looks what is left.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	fates := map[uint64]fate{}
	var written int64
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	var left, told int
	for round := range *crashRounds {
		events, bytes := crash(t, dir, r, fates)
		told, written = told+events, written+bytes
		left += survey(t, dir, fates, written)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d rounds, %d events, %d blocks found whole", *crashRounds, told, left)
	if told == 0 || left == 0 {
		t.Error("no round got to write anything")
	}
}

// crash lets a child write and kills it; it returns the number of events told,
// and the bytes of the Puts that ended.
func crash(t *testing.T, dir string, r *rand.Rand, fates map[uint64]fate) (told int, written int64) {
	from := uint64(1)
	for n := range fates {
		from = max(from, n+1)
	}
	cmd := child(t, "crash", dir, fmt.Sprintf("%s=%d", fromEnv, from))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, wait := r.IntN(150), time.Duration(r.IntN(20_000))*time.Microsecond
	in := bufio.NewReader(out)
	for {
		if told == lines {
			// Some die right after an event, some while they open the store.
			time.AfterFunc(wait, func() { cmd.Process.Kill() })
		}
		var kind byte
		var n uint64
		if _, err := fmt.Fscanf(in, "%c %d\n", &kind, &n); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("event %d: %v", told, err)
			}
			break
		}
		fates[n] = fate(kind)
		told++
		if kind == byte(stored) {
			written += crashBlock(n).Bytes
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the child was not killed: %v", err)
	}
	return told, written
}

// survey opens the store, checks every block and what was written within a day,
// and returns how many blocks there are.
func survey(t *testing.T, dir string, fates map[uint64]fate, written int64) int {
	s, err := Open(crashConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	items := map[ieg.BlockHash]uint64{}
	for n := range fates {
		items[crashBlock(n).Hash] = n
	}
	there := map[uint64]bool{}
	err = s.Each(t.Context(), func(m tier.Meta) error {
		n, known := items[m.Hash]
		if !known {
			return fmt.Errorf("block %v was never put", m.Hash)
		}
		there[n] = true
		it := crashItem(n)
		return tiertest.Holds(t.Context(), s, &it)
	})
	if err != nil {
		t.Error(err)
	}
	for n, f := range fates {
		if f == stored && !there[n] || f == deleted && there[n] {
			t.Errorf("block %d: last told %q, there: %v", n, f, there[n])
		}
		if there[n] {
			fates[n] = stored
		} else {
			fates[n] = deleted
		}
	}
	if u := s.Usage(); u.Blocks != int64(len(there)) {
		t.Errorf("usage %+v, %d blocks are there", u, len(there))
	} else if n := u.Day.Sum(time.Now()); n < written {
		t.Errorf("%d bytes written within a day, the Puts that ended had %d", n, written)
	}
	shrink(t, s, fates)
	return len(there)
}

// shrink deletes some of what earlier rounds left, so that a round stays short.
func shrink(t *testing.T, s *Store, fates map[uint64]fate) {
	var hs []ieg.BlockHash
	for n, f := range fates {
		if f == stored && len(hs) < 30 {
			hs = append(hs, crashBlock(n).Hash)
			fates[n] = deleted
		}
	}
	if err := s.Delete(t.Context(), hs); err != nil {
		t.Error(err)
	}
}
