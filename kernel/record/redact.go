package record

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ieg"
	"ieg/kernel"
	"ieg/kernel/graph"
)

// Redact copies a segment without the users' content, so that it can be handed
// on and still replayed with the same decisions.
//
// A token becomes a keyed hash of itself and all tokens before it in its
// sequence. Equal beginnings stay equal, which is all that decisions depend on;
// equal tokens elsewhere do not, so that nothing can be counted. The key is
// random and thrown away. Names of tenants and tools become hashes; stop
// strings, stop tokens, biases and grammars are left out, notes of failures and
// cancels too. Names of KV blocks are made anew from the replaced tokens and
// tenants. Lengths, times, classes, models, digests of KV and the requests' ids
// stay.
//
// The segment is read to its end first, and held in memory. One without its end
// mark is copied as far as it goes.
func Redact(w io.Writer, in io.Reader) error {
	var key [32]byte
	if _, err := rand.Read(key[:]); err != nil {
		return err
	}
	return redact(w, in, key)
}

// chain is the state of the hash over a sequence's tokens.
type chain [32]byte

// redactor replaces content. It runs the machine beside, to learn which
// sequence speaks for which request.
type redactor struct {
	key    [32]byte
	chains map[ieg.SeqID]chain
	roots  names
}

func redact(w io.Writer, in io.Reader, key [32]byte) error {
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	s, err := newSegment(bytes.NewReader(data))
	if err != nil {
		return err
	}
	r := &redactor{key: key, chains: map[ieg.SeqID]chain{}}
	r.learnRoots(data)
	enc := newEncoder()
	s.header.Redacted = true
	if err := enc.header(s.header); err != nil {
		return err
	}
	m, err := restore(s.snap)
	if err != nil {
		return fmt.Errorf("%w: the snapshot: %w", ErrCorrupt, err)
	}
	r.snapshot(s.snap)
	if err := enc.snapshot(s.snap); err != nil {
		return err
	}
	for {
		if _, err := w.Write(enc.out); err != nil {
			return err
		}
		enc.out = enc.out[:0]
		mk, ev, err := s.next()
		if errors.Is(err, io.EOF) {
			enc.end()
			_, err = w.Write(enc.out)
			return err
		}
		if errors.Is(err, errNoEnd) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.event(enc, m, mk, ev); err != nil {
			return err
		}
	}
}

// event redacts one event into the encoder.
func (r *redactor) event(enc *encoder, m *kernel.Machine, mk mark, ev kernel.Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%T at %d: the machine panics: %v", ev, mk.now, p)
		}
	}()
	if c, ok := ev.(kernel.KVControl); ok {
		ev, mk.digest.Content = r.control(m, c), 0
		m.Apply(mk.now, c)
		return enc.event(mk, ev)
	}
	m.Apply(mk.now, ev)
	mk.digest.Content = 0
	switch e := ev.(type) {
	case kernel.Arrived:
		spec, end := r.request(e.Request)
		for _, a := range m.Ready().Admits {
			r.chains[a.Seq] = end
		}
		return enc.event(mk, kernel.Arrived{Request: spec})
	case kernel.Cancel:
		e.Err = ""
		return enc.event(mk, e)
	case kernel.StepDone:
		for i := range e.Done.Results {
			res := &e.Done.Results[i]
			if !res.Sampled {
				res.Token = 0
				continue
			}
			c := r.chains[res.Seq]
			res.Token = r.next(&c, res.Token)
			r.chains[res.Seq] = c
		}
		e.Done.Err = reason(e.Done.Err)
		var head [64]byte
		enc.report(appendReport(appendMark(head[:0], mk), e.Done))
		return nil
	case kernel.EngineLost:
		e.Reason = "redacted"
		return enc.event(mk, e)
	case kernel.NVMeDown:
		e.Reason = reason(e.Reason)
		return enc.event(mk, e)
	case kernel.MoveDone:
		e.Done.Err = reason(e.Done.Err)
		return enc.event(mk, e)
	}
	return enc.event(mk, ev)
}

// next extends a chain by a token and returns its replacement.
func (r *redactor) next(c *chain, t ieg.Token) ieg.Token {
	var b [68]byte
	copy(b[:], r.key[:])
	copy(b[32:], c[:])
	binary.BigEndian.PutUint32(b[64:], uint32(t))
	*c = sha256.Sum256(b[:])
	return ieg.Token(binary.BigEndian.Uint32(c[:4]) >> 1)
}

// tokens replaces a list that goes on from a chain.
func (r *redactor) tokens(c *chain, in []ieg.Token) []ieg.Token {
	out := make([]ieg.Token, len(in))
	for i, t := range in {
		out[i] = r.next(c, t)
	}
	return out
}

// name replaces a name; "" and the kernel's own marks stay.
func (r *redactor) name(s string) string {
	if s == "" || strings.HasPrefix(s, "\x00") {
		return s
	}
	sum := sha256.Sum256(append(append([]byte{}, r.key[:]...), s...))
	return "x" + hex.EncodeToString(sum[:6])
}

// request returns a redacted copy and the chain at the end of its prompt.
func (r *redactor) request(in *ieg.Request) (*ieg.Request, chain) {
	spec := *in
	var c chain
	spec.Prompt = r.tokens(&c, in.Prompt)
	spec.Tenant, spec.Stored = r.name(in.Tenant), r.stored(in.Stored)
	spec.Tools = make([]string, len(in.Tools))
	for i, t := range in.Tools {
		spec.Tools[i] = r.name(t)
	}
	p := &spec.Sampling
	p.LogitBias, p.AllowedTokens, p.StopTokens, p.Stop, p.Grammar, p.GrammarTriggers = nil, nil, nil, nil, "", nil
	return &spec, c
}

func (r *redactor) snapshot(s *kernel.Snapshot) {
	r.tiers(s)
	for i := range s.Requests {
		q := &s.Requests[i]
		spec, end := r.request(q.Spec)
		q.Spec = spec
		for j := range q.Seqs {
			c := end
			q.Seqs[j].Generated = r.tokens(&c, q.Seqs[j].Generated)
			r.chains[q.Seqs[j].ID] = c
		}
		r.graph(&q.Graph)
	}
	for i := range s.Engines {
		e := &s.Engines[i]
		for j := range e.Flight.Orphans {
			var c chain
			o := &e.Flight.Orphans[j]
			o.Tokens = r.tokens(&c, o.Tokens)
			r.chains[o.ID] = c
		}
		if e.Pool == nil {
			continue
		}
		for j := range e.Pool.Rows {
			var c chain
			row := &e.Pool.Rows[j]
			row.Tokens, row.Tenant = r.tokens(&c, row.Tokens), r.name(row.Tenant)
		}
	}
}

func (r *redactor) graph(g *graph.Graph) {
	g.Nodes = slices.Clone(g.Nodes)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		n.Name, n.Note = r.name(n.Name), ""
	}
	if g.Tools != nil {
		t := *g.Tools
		t.Tools = make([]string, len(g.Tools.Tools))
		for i, name := range g.Tools.Tools {
			t.Tools[i] = r.name(name)
		}
		g.Tools = &t
	}
}
