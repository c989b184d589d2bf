package node

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ieg"
	"ieg/api/admin"
	"ieg/memory/kv"
)

// textLedger is the ledger of an arena with two texts that share their first
// block: one of two blocks more, one of a tail; and one text whose blocks the
// NVMe tier has too.
func textLedger(t *testing.T) (l kv.HostLedger, root ieg.BlockHash) {
	t.Helper()
	h := kv.NewHost(kv.HostConfig{Pages: 16, PageBytes: 4096})
	root = kv.Root("m", "")
	add := func(parent ieg.BlockHash, start, n int32, salt ieg.Token, disk bool) ieg.BlockHash {
		tokens := make([]ieg.Token, n)
		for i := range tokens {
			tokens[i] = salt
		}
		b := ieg.Block{Parent: parent, Root: root, Start: start, Tokens: tokens, Bytes: int64(n) * 10, Hash: kv.Name(parent, tokens)}
		k := h.Begin(b, 1, true)
		if k == nil {
			t.Fatal("no room")
		}
		h.Fill(k, 1, 1)
		if disk {
			h.OnDisk(k, kv.Kept{Bytes: b.Bytes})
		}
		return b.Hash
	}
	first := add(root, 0, 256, 1, false)
	second := add(first, 256, 256, 2, false)
	third := add(second, 512, 256, 3, false)
	add(first, 256, 40, 4, false)
	add(root, 0, 256, 5, true)
	k := h.Get(third)
	h.Hold(kv.LeasePin, 0, 0, ieg.Never, k.Line()...)
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
	return h.Ledger(), root
}

func TestArenaTree(t *testing.T) {
	l, root := textLedger(t)
	var got []string
	for _, r := range newArenaTree(l).rows(1, map[ieg.BlockHash]string{root: "small"}) {
		got = append(got, fmt.Sprintf("%s to %d: %d tokens, %d bytes, heat %.0f, pinned %v, %v", r.Model, r.Depth, r.Tokens, r.Bytes, r.Heat, r.Pinned, r.Tiers))
	}
	want := `small to 256: 808 tokens, 8080 bytes, heat 1, pinned true, [host]
small to 768: 512 tokens, 5120 bytes, heat 1, pinned true, [host]
small to 296: 40 tokens, 400 bytes, heat 1, pinned false, [host]`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got:\n%s\nwant:\n%s", text, want)
	}
}

func TestAShortHashIsOne(t *testing.T) {
	a, b := ieg.BlockHash{0xab, 1}, ieg.BlockHash{0xab, 2}
	if _, err := theOne("ab", nil); !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
	if h, err := theOne("ab", map[ieg.BlockHash]bool{b: true}); err != nil || h != b {
		t.Errorf("one: %v, %v", h, err)
	}
	_, err := theOne("ab", map[ieg.BlockHash]bool{a: true, b: false})
	if !errors.Is(err, admin.ErrInvalid) || !strings.Contains(err.Error(), "ab names 2 blocks, among them "+a.String()+" and "+b.String()) {
		t.Errorf("two: %v", err)
	}
}

// BenchmarkLedger is what a look at the tree takes of the loop, and after it of
// others, for 32,768 blocks in texts of eight.
func BenchmarkLedger(b *testing.B) {
	const texts, blocks = 4096, 8
	h := kv.NewHost(kv.HostConfig{Pages: texts * blocks, PageBytes: 1 << 20})
	root := kv.Root("m", "")
	for t := range texts {
		parent := root
		for i := range blocks {
			tokens := make([]ieg.Token, ieg.BlockTokens)
			tokens[0] = ieg.Token(t)
			block := ieg.Block{Parent: parent, Root: root, Start: int32(i) * ieg.BlockTokens, Tokens: tokens, Bytes: 1 << 20, Hash: kv.Name(parent, tokens)}
			h.Fill(h.Begin(block, 1, true), 1, 1)
			parent = block.Hash
		}
	}
	b.Run("loop", func(b *testing.B) {
		for b.Loop() {
			h.Ledger()
		}
	})
	l := h.Ledger()
	b.Run("rows", func(b *testing.B) {
		for b.Loop() {
			if n := len(newArenaTree(l).rows(1, nil)); n < texts {
				b.Fatal(n)
			}
		}
	})
}
