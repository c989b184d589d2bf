package llama

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
	"ieg/cgo/llamax"
)

// tiers tells whether KV is to leave the engine: blocks are rows, and V lies in
// rows only with flash attention.
func (l *loading) tiers() bool {
	return l.spec.Arena != nil && l.info.KVNote == ""
}

// slides tells whether layers have a window: the library's own export then
// lacks tokens, and in the unified layout cells that have left the window are
// given to others. In streams the cells stay, and are read where they lie.
func (l *loading) slides() bool {
	for _, g := range l.info.Model.KV {
		if g.Kind == ieg.SlidingWindow {
			return true
		}
	}
	return false
}

// noTiers gives the reasons against blocks that are known before a context is.
func (l *loading) noTiers() string {
	switch {
	case l.spec.Arena == nil && l.spec.ArenaNote != "":
		return l.spec.ArenaNote
	case l.spec.Arena == nil:
		return "the engine was started without an arena"
	case l.spec.FlashAttn == "off":
		return "blocks need flash attention, which is off"
	case l.spec.Layout == "unified" && l.slides():
		return "layers with a sliding window lose tokens in the unified layout; ask for streams"
	case l.spec.Layout == "unified" && l.size.slots == maxSlots:
		return fmt.Sprintf("blocks need a spare sequence in the unified layout, and all %d are slots; ask for fewer slots or for streams", maxSlots)
	}
	return ""
}

// build makes the context for generation and what copies blocks out of it. No
// more than the tiers is lost if the library's KV is not as it is known.
func (l *loading) build(r *Runner, s shape) error {
	l.lib.log.Sums()
	if s.layout == ieg.Streams && s.flash && (l.tiers() || l.slides()) {
		s.watch = llamax.NewWatch()
		defer s.watch.Close()
	}
	if s.layout == ieg.Unified && l.tiers() {
		s.spare = 1
	}
	var err error
	if r.gen, err = newContext(l.lib, l.model, s, l.abort); err != nil {
		return err
	}
	r.slots = newSlots(r.gen, l.tokenBytes)
	b, err := l.learn(r.slots)
	if err != nil && s.watch != nil {
		// Without the tensors: a context in which the watch may still be can't
		// stay, and the export is whole unless layers slide.
		r.gen.close()
		s.watch = nil
		l.lib.log.Sums()
		if r.gen, err = newContext(l.lib, l.model, s, l.abort); err != nil {
			return err
		}
		r.slots = newSlots(r.gen, l.tokenBytes)
		r.slots.pruned = l.slides()
		if b, err = nil, errPruned; !r.slots.pruned {
			b, err = l.learn(r.slots)
		}
	}
	switch {
	case !l.tiers():
	case err != nil:
		l.info.KVNote = err.Error()
	case b == nil:
		l.info.KVNote = "the model keeps no KV by token"
	}
	if r.slots.blocks = b; b != nil && l.tiers() {
		b.info, b.arena = &r.info, l.spec.Arena
		l.info.KVToken, l.info.KVINT8 = int64(b.shape.token), b.int8
		l.info.KVName, l.info.KVPieces = l.kvName(b), b.inPlace
	}
	return nil
}

// unwatch ends the look for tensors; tests make it fail.
var unwatch = (*llamax.Watch).Unwatch

// errPruned: the way by the export is not open to models with sliding layers.
var errPruned = errors.New("the library's export leaves out what sliding windows won't read again, and its tensors were not found")

// kvName tells KV apart that must not be mixed. Backend, layout and context
// are no part of it.
func (l *loading) kvName(b *blocks) string {
	return strings.Join([]string{l.info.Model.Digest, "adapter none", l.info.KVType, "rows v1 flash", b.shape.name(), l.info.Library}, "|")
}

// learn finds the rows in a new context and proves all ways to them with a
// short sequence. It leaves the context empty.
func (l *loading) learn(s *slots) (*blocks, error) {
	c, watch := s.c, s.c.shape.watch
	if !c.shape.flash || c.mem == 0 || !l.tiers() && watch == nil {
		return nil, nil
	}
	b := &blocks{s: s, kvType: l.info.KVType, direct: watch != nil, scratch: c.shape.slots, cores: grantedCores(), alone: joinAlone}
	defer func() {
		_ = yz.MemoryClear(c.mem, false)
		clear(s.tokens)
		s.dropBlob()
	}()
	if err := l.compute(s, 0, learnFirst); err != nil {
		return nil, err
	}
	calls := 0
	if b.direct {
		if err := unwatch(watch, uintptr(c.ctx)); err != nil {
			return nil, err
		}
		b.tensors, calls = watch.Found(c.lib.x), watch.Calls()
	}
	if err := l.compute(s, learnFirst, learnTokens); err != nil {
		return nil, err
	}
	if b.direct && watch.Calls() != calls {
		return nil, errors.New("the context still calls its watch")
	}
	blob, err := c.export(s.seq[0], nil)
	if err != nil {
		return nil, err
	}
	if err := b.learnShape(blob); err != nil {
		return nil, err
	}
	b.int8 = b.shape.packs(b.kvType)
	if err := b.prove(blob); err != nil {
		return nil, err
	}
	b.inPlace = b.direct && b.provePlace(min(1, ieg.Slot(c.shape.slots)-1), learnTokens)
	if b.inPlace {
		b.reserve(int(c.shape.slotTokens))
	}
	return b, nil
}

// compute adds tokens [from, to) of no meaning to slot 0.
func (l *loading) compute(s *slots, from, to int) error {
	b, vocab := s.c.batch, l.vocabSize()
	b.n = 0
	for i := from; i < to; i++ {
		b.add(ieg.Token((7+13*i)%vocab), int32(i), s.seq[0], i == to-1)
	}
	if code := s.c.decode(); code != decodeOK {
		return fmt.Errorf("llama.cpp failed with code %d: %s", code, l.lib.log.Take())
	}
	s.tokens[0] = int32(to)
	return nil
}

// learnShape learns the order of the rows from the export of slot 0.
func (b *blocks) learnShape(blob []byte) (err error) {
	c, streams := b.s.c, 1
	if c.shape.layout == ieg.Streams {
		streams = int(c.shape.slots)
	}
	if b.form, err = readForm(blob, learnTokens, streams); err != nil {
		return err
	}
	copy(b.head[:], blob)
	if !b.direct {
		b.shape, err = shapeOf(b.form)
		return err
	}
	for i := range b.tensors {
		if t := &b.tensors[i]; t.Streams != streams || t.Cells != int(c.shape.slotTokens) {
			return fmt.Errorf("%w: %d streams of %d cells in layer %d", errForm, t.Streams, t.Cells, t.Layer)
		}
	}
	b.shape, err = shapeByContent(b.form, blob, learnTokens, b.tensors, func(t *llamax.Rows) ([]byte, error) {
		rows := make([]byte, learnTokens*t.Bytes)
		return rows, c.lib.x.ReadRows(t, 0, 0, rows)
	})
	return err
}

// prove holds what the chosen way reads, and a state joined from it, against
// the export, before and after it went through another slot.
func (b *blocks) prove(blob []byte) error {
	places, err := b.form.places(blob, learnTokens, 0, nil)
	if err != nil {
		return err
	}
	state := make([]byte, b.form.size(learnTokens))
	b.to = b.form.write(state, b.head, learnTokens, 0, b.to)
	same := func(slot ieg.Slot, out []byte) error {
		src, err := b.source(slot, 0, learnTokens)
		for i := range b.shape.rows {
			r := &b.shape.rows[i]
			n := learnTokens * r.bytes
			rows := make([]byte, n)
			if err == nil {
				err = b.read(&src, r, 0, 0, rows)
			}
			if err == nil && !bytes.Equal(rows, blob[places[r.export]:][:n]) {
				err = fmt.Errorf("%w: row %d of slot %d differs", errForm, i, slot)
			}
			copy(out[b.to[r.export]:], rows)
		}
		return err
	}
	if err := same(0, state); err != nil {
		return err
	}
	if !bytes.Equal(state, blob) {
		return fmt.Errorf("%w: a state written like it differs", errForm)
	}
	other := ieg.Slot(min(1, b.s.c.shape.slots-1))
	if err := b.s.trim(0, 0); err != nil {
		return err
	}
	b.s.blobOf = ieg.NoSlot
	if b.s.c.shape.layout == ieg.Streams {
		if err := b.s.load(other, state); err != nil {
			return err
		}
		b.s.tokens[other] = learnTokens
	} else {
		b.state = state
		if err := b.adopt(&ieg.KVOp{To: other, N: learnTokens}); err != nil {
			return err
		}
	}
	return same(other, state)
}
