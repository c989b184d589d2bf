package kv_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ieg"
	"ieg/memory/kv"
)

// spelled makes the tokens of a text in words with commas between them: a
// capital letter is a full block of it, A@100 a full block that agrees with A
// in its first 100 tokens, A:100 these tokens only, and small letters are
// themselves.
func spelled(t *testing.T, text string) (tokens []ieg.Token) {
	for word := range strings.SplitSeq(text, ",") {
		letter, at, cut := strings.Cut(word, ":")
		if !cut {
			letter, at, _ = strings.Cut(word, "@")
		}
		if letter == strings.ToLower(letter) {
			tokens = append(tokens, letters(word)...)
			continue
		}
		n := ieg.BlockTokens
		if at != "" {
			var err error
			if n, err = strconv.Atoi(at); err != nil {
				t.Fatalf("%q: %v", word, err)
			}
		}
		for i := range ieg.BlockTokens {
			switch {
			case i < n:
				tokens = append(tokens, ieg.Token(letter[0]))
			case !cut:
				tokens = append(tokens, ieg.Token(1000+n))
			}
		}
	}
	return tokens
}

// lastBlock is the block at the end of a text, four bytes a token.
func lastBlock(root ieg.BlockHash, tokens []ieg.Token) ieg.Block {
	start := (len(tokens) - 1) / ieg.BlockTokens * ieg.BlockTokens
	b := ieg.Block{Parent: root, Root: root, Start: int32(start), Tokens: tokens[start:]}
	if chain := kv.Names(nil, root, tokens[:start]); len(chain) > 0 {
		b.Parent = chain[len(chain)-1]
	}
	b.Hash, b.Bytes = kv.Name(b.Parent, b.Tokens), int64(4*len(b.Tokens))
	return b
}

// pathOf lists the blocks of a text, the last one at its end.
func pathOf(root ieg.BlockHash, tokens []ieg.Token) (out []ieg.Block) {
	for end := ieg.BlockTokens; end < len(tokens); end += ieg.BlockTokens {
		out = append(out, lastBlock(root, tokens[:end]))
	}
	return append(out, lastBlock(root, tokens))
}

// hostStory runs a script about the ledger.
type hostStory struct {
	t      *testing.T
	h      *kv.Host
	now    ieg.Time
	labels map[ieg.BlockHash]string
	order  []ieg.BlockHash
	w      strings.Builder
}

// block names the last block of a text for the output.
func (s *hostStory) block(root ieg.BlockHash, tenant, text string) ieg.Block {
	b := lastBlock(root, spelled(s.t, text))
	if s.labels[b.Hash] == "" {
		s.labels[b.Hash] = strings.TrimPrefix(tenant+"/"+text, "/")
		s.order = append(s.order, b.Hash)
	}
	return b
}

func (s *hostStory) run(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	s.w.Reset()
	var pages, id, seconds, owner, epoch int
	var tenant, text, kind, policy string
	for name, into := range map[string]any{"pages": &pages, "id": &id, "s": &seconds, "owner": &owner, "epoch": &epoch,
		"tenant": &tenant, "text": &text, "kind": &kind, "policy": &policy} {
		d.MaybeScanArgs(t, name, into)
	}
	s.now = s.now.Add(time.Second)
	root := kv.Root("model", tenant)
	var b ieg.Block
	var k *kv.Known
	if text != "" && d.Cmd != "find" && d.Cmd != "promise" {
		b = s.block(root, tenant, text)
		k = s.h.Get(b.Hash)
	}
	kinds := map[string]kv.LeaseKind{"step": kv.LeaseStep, "move": kv.LeaseMove, "pin": kv.LeasePin}
	switch d.Cmd {
	case "arena":
		cfg := kv.HostConfig{Pages: int32(pages), PageBytes: 512}
		if policy == "lru" {
			cfg.Policy = kv.LRU
		}
		*s = hostStory{t: t, h: kv.NewHost(cfg), now: s.now, labels: map[ieg.BlockHash]string{}}
		s.h.SetRates(kv.Rates{Token: 1e-3, Pair: 1e-6, Byte: 1e-9})
	case "begin":
		if s.h.Begin(b, s.now, true) == nil {
			fmt.Fprintln(&s.w, "refused")
		}
	case "fill":
		s.h.Fill(k, 7, s.now)
	case "abandon":
		s.h.Abandon(k)
	case "evict":
		s.h.Evict(k)
	case "put":
		s.put(b)
	case "find":
		s.find(root, text)
	case "touch":
		s.h.Touch(k.Line(), s.now)
	case "want":
		s.h.Want(k.Line(), 1)
	case "unwant":
		s.h.Want(k.Line(), -1)
	case "promise":
		for _, p := range pathOf(root, spelled(t, text)) {
			_ = s.block(root, tenant, wordsUpTo(text, p.Start))
		}
		got := s.h.Promise(ieg.Stored{Blocks: pathOf(root, spelled(t, text))})
		fmt.Fprintf(&s.w, "%d taken in\n", len(got))
	case "ondisk":
		s.h.OnDisk(k, kv.Kept{Bytes: b.Bytes, Digest: 7})
	case "offdisk":
		s.h.OffDisk(k)
	case "hold":
		until := ieg.Never
		if seconds > 0 {
			until = s.now.Add(time.Duration(seconds) * time.Second)
		}
		fmt.Fprintf(&s.w, "lease %d\n", s.h.Hold(kinds[kind], uint64(owner), ieg.Epoch(epoch), until, k.Line()...))
	case "release":
		s.h.Release(kv.LeaseID(id))
	case "unpin":
		s.h.Unpin(k)
	case "gone":
		s.h.ReleaseOwner(kinds[kind], uint64(owner), ieg.Epoch(epoch))
	case "wait":
		s.now = s.now.Add(time.Duration(seconds) * time.Second)
		if next := s.h.Expire(s.now); next != ieg.Never {
			fmt.Fprintf(&s.w, "the next lease ends in %s\n", next.Sub(s.now))
		}
	case "discard":
		s.h.Discard(k)
	case "drop":
		s.h.Drop(func(r ieg.BlockHash) bool { return r == root })
	case "dropall":
		s.h.Drop(func(ieg.BlockHash) bool { return true })
	case "restart":
		s.restart()
	default:
		t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	}
	if err := s.h.Check(); err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	s.show()
	return s.w.String()
}

// wordsUpTo is the text up to the block that begins at start.
func wordsUpTo(text string, start int32) string {
	words := strings.Split(text, ",")
	return strings.Join(words[:min(int(start/ieg.BlockTokens)+1, len(words))], ",")
}

// put begins a block and fills it.
func (s *hostStory) put(b ieg.Block) {
	if k := s.h.Begin(b, s.now, true); k != nil {
		s.h.Fill(k, 7, s.now)
	} else {
		fmt.Fprintln(&s.w, "refused")
	}
}

func (s *hostStory) find(root ieg.BlockHash, text string) {
	tokens := spelled(s.t, text)
	p := s.h.Find(root, kv.Names(nil, root, tokens), tokens, kv.Path{})
	var list []string
	for _, k := range p.Blocks {
		list = append(list, s.labels[k.Hash])
	}
	if len(list) == 0 {
		fmt.Fprintln(&s.w, "nothing known")
		return
	}
	fmt.Fprintf(&s.w, "%d of %d tokens known, %d in the arena: %s\n", p.N, len(tokens), p.Host, strings.Join(list, " + "))
	if n := p.Left(); n > 0 {
		fmt.Fprintf(&s.w, "the text leaves what is known %d tokens before its end\n", n)
	}
}

// restart takes the ledger through its plain form. Nobody wants anything
// afterwards.
func (s *hostStory) restart() {
	h, err := kv.FromLedger(s.h.Ledger())
	if err != nil {
		s.t.Fatal(err)
	}
	s.h = h
}

// show prints each known block in the order in which the script named them.
func (s *hostStory) show() {
	states := [...]string{"absent", "filling", "resident"}
	for _, name := range s.order {
		k := s.h.Get(name)
		if k == nil {
			continue
		}
		fmt.Fprintf(&s.w, "  %s: %s", s.labels[name], states[k.State])
		if len(k.Pages) > 0 {
			fmt.Fprintf(&s.w, " on %v", slices.Sorted(slices.Values(k.Pages)))
		}
		if k.Disk {
			fmt.Fprint(&s.w, ", on disk")
		}
		if k.Held() {
			fmt.Fprint(&s.w, ", held")
		}
		fmt.Fprintln(&s.w)
	}
	fmt.Fprintf(&s.w, "  %d of %d pages free", s.h.Free(), s.h.Pages())
	for kind := kv.LeaseStep; kind <= kv.LeasePin; kind++ {
		if n := s.h.Leases(kind); n > 0 {
			fmt.Fprintf(&s.w, ", %d %s", n, kind)
		}
	}
	fmt.Fprintln(&s.w)
}

func TestHostGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/host", func(t *testing.T, path string) {
		s := &hostStory{}
		datadriven.RunTest(t, path, s.run)
	})
}
