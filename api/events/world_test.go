package events

import (
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"testing"

	"ieg"
	"ieg/kernel"
)

// newPublisher publishes on free ports.
func newPublisher(t testing.TB, endpoint string) *Publisher {
	t.Helper()
	at, err := ParseEndpoint(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Endpoint: at, Node: "10.0.0.1:8080", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func closing(t testing.TB, p *Publisher) {
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}

// chain makes the blocks of a text: full ones, and one of tail tokens.
func chain(seed uint64, model string, full, tail int) []ieg.KVEvent {
	rng := rand.New(rand.NewPCG(seed, 0))
	root := name(ieg.BlockHash{}, []ieg.Token{ieg.Token(len(model))})
	parent := root
	var out []ieg.KVEvent
	for i := range full + min(tail, 1) {
		n := ieg.BlockTokens
		if i == full {
			n = tail
		}
		tokens := make([]ieg.Token, n)
		for j := range tokens {
			tokens[j] = ieg.Token(rng.IntN(200_000))
		}
		b := ieg.Block{Hash: name(parent, tokens), Parent: parent, Root: root, Start: int32(i * ieg.BlockTokens), Tokens: tokens}
		out = append(out, ieg.KVEvent{Kind: ieg.KVStored, Model: model, Block: b})
		parent = b.Hash
	}
	return out
}

func name(parent ieg.BlockHash, tokens []ieg.Token) ieg.BlockHash {
	b := parent[:]
	for _, t := range tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(t))
	}
	sum := sha256.Sum256(b)
	return ieg.BlockHash(sum[:16])
}

// at returns the events as those of a tier; gone, as removals.
func at(tier ieg.Tier, events []ieg.KVEvent) []ieg.KVEvent {
	out := append([]ieg.KVEvent(nil), events...)
	for i := range out {
		out[i].Tier = tier
	}
	return out
}

func gone(tier ieg.Tier, events []ieg.KVEvent) (out []ieg.KVEvent) {
	for _, e := range events {
		out = append(out, ieg.KVEvent{Kind: ieg.KVRemoved, Tier: tier, Model: e.Model, Block: ieg.Block{Hash: e.Block.Hash}})
	}
	return out
}

// loop plays the kernel's: it observes one turn, whose memory is used again.
func loop(p *Publisher, turn []ieg.KVEvent) {
	r := kernel.Ready{KV: append([]ieg.KVEvent(nil), turn...)}
	for i := range r.KV {
		r.KV[i].Block.Tokens = append([]ieg.Token(nil), turn[i].Block.Tokens...)
	}
	p.Observe(0, nil, &r)
	for i := range r.KV {
		for j := range r.KV[i].Block.Tokens {
			r.KV[i].Block.Tokens[j] = -1
		}
		r.KV[i] = ieg.KVEvent{}
	}
}

// twin folds the events themselves.
func (v view) twin(turn []ieg.KVEvent) {
	for _, e := range turn {
		key := e.Model + " " + media[e.Tier]
		if v[key] == nil {
			v[key] = map[uint64]bool{}
		}
		if e.Kind == ieg.KVStored {
			v[key][short(e.Block.Hash)] = true
		} else {
			delete(v[key], short(e.Block.Hash))
		}
	}
}

// work is a random history of tiers in turns.
func work(seed uint64, turns int) (out [][]ieg.KVEvent) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var texts [][]ieg.KVEvent
	for i := range 12 {
		texts = append(texts, chain(seed<<8+uint64(i), []string{"m", "org/other"}[i%2], 1+rng.IntN(6), rng.IntN(100)))
	}
	for range turns {
		var turn []ieg.KVEvent
		for range 1 + rng.IntN(4) {
			text, tier := texts[rng.IntN(len(texts))], ieg.Tier(rng.IntN(int(ieg.NumTiers)))
			from := rng.IntN(len(text))
			part := text[from : from+1+rng.IntN(len(text)-from)]
			if rng.IntN(3) == 0 {
				turn = append(turn, gone(tier, part)...)
			} else {
				turn = append(turn, at(tier, part)...)
			}
		}
		out = append(out, turn)
	}
	return out
}
