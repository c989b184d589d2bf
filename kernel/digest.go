package kernel

import (
	"math/bits"

	"ieg"
)

// Digest sums up a Ready: two are equal if their digests are, for all that can
// be told. Shape covers every decision; Content covers token ids and messages,
// which a redacted recording does not have. Text and vectors of results are
// the engine's, not the machine's, and left out.
type Digest struct{ Shape, Content uint64 }

// sum is a running digest.
type sum uint64

func (s *sum) add(v uint64) { *s = sum(bits.RotateLeft64(uint64(*s)^v, 29) * 0x9e3779b97f4a7c15) }
func (s *sum) text(t string) {
	s.add(uint64(len(t)))
	for i := range len(t) {
		s.add(uint64(t[i]))
	}
}
func (s *sum) err(e error) {
	if e != nil {
		s.text(e.Error())
	}
}
func (s *sum) flag(b bool) {
	if b {
		s.add(1)
	} else {
		s.add(0)
	}
}

// Digest sums up what the machine wants done.
func (r *Ready) Digest() Digest {
	shape, content := sum(1), sum(2)
	for _, n := range [...]int{len(r.Admits), len(r.Emits), len(r.Finishes), len(r.Aborts), len(r.Halts), len(r.Kills), len(r.Loads), len(r.Unloads), len(r.Refusals), len(r.Moves), len(r.Batches)} {
		shape.add(uint64(n))
	}
	for _, a := range r.Admits {
		shape.add(uint64(a.Request))
		shape.add(uint64(a.Choice))
		shape.add(uint64(a.Seq))
	}
	for _, e := range r.Emits {
		shape.add(uint64(e.Request))
		shape.add(uint64(e.Choice)<<32 | uint64(uint32(e.Result.Computed)))
		shape.add(uint64(e.Result.Stop))
		shape.flag(e.Result.Sampled)
		content.add(uint64(e.Result.Token))
	}
	for i := range r.Finishes {
		digestFinish(&r.Finishes[i], &shape, &content)
	}
	for _, refs := range [...][]StepRef{r.Aborts, r.Halts} {
		for _, s := range refs {
			shape.add(uint64(s.Engine)<<32 | uint64(s.Epoch))
			shape.add(uint64(s.Step))
		}
	}
	for _, k := range r.Kills {
		shape.add(uint64(k.Engine)<<32 | uint64(k.Epoch))
		content.text(k.Reason)
	}
	for _, ids := range [...][]ieg.EngineID{r.Loads, r.Unloads} {
		for _, id := range ids {
			shape.add(uint64(id))
		}
	}
	for _, f := range r.Refusals {
		shape.add(uint64(f.Engine))
		content.err(f.Err)
	}
	for i := range r.Moves {
		digestMove(&r.Moves[i], &shape, &content)
	}
	for _, b := range r.Batches {
		digestBatch(b, &shape, &content)
	}
	return Digest{uint64(shape), uint64(content)}
}

func digestFinish(f *ieg.Finish, shape, content *sum) {
	for _, v := range [...]uint64{
		uint64(f.Request), uint64(f.Choice), uint64(f.Reason), uint64(f.Usage.Prompt), uint64(f.Usage.Cached), uint64(f.Usage.Generated),
		uint64(f.RetryAfter), uint64(f.Times.Received), uint64(f.Times.Arrived), uint64(f.Times.Admitted), uint64(f.Times.FirstToken), uint64(f.Times.Last),
	} {
		shape.add(v)
	}
	shape.flag(f.Err != nil)
	content.err(f.Err)
}

func digestMove(v *ieg.Move, shape, content *sum) {
	for _, n := range [...]uint64{uint64(v.ID), uint64(v.Kind), uint64(v.Block.Start), uint64(len(v.Block.Tokens)), uint64(v.Block.Bytes)} {
		shape.add(n)
	}
	for _, p := range v.Pages {
		shape.add(uint64(p))
	}
	for _, b := range v.Block.Hash {
		content.add(uint64(b))
	}
}

func digestBatch(b *ieg.Batch, shape, content *sum) {
	for _, v := range [...]uint64{uint64(b.Engine), uint64(b.Epoch), uint64(b.Step), uint64(b.Grant),
		uint64(len(b.Drop)), uint64(len(b.New)), uint64(len(b.Ops)), uint64(len(b.Work))} {
		shape.add(v)
	}
	for _, id := range b.Drop {
		shape.add(uint64(id))
	}
	for i := range b.New {
		n := &b.New[i]
		for _, v := range [...]uint64{uint64(n.Seq), uint64(n.Slot), uint64(len(n.Tokens)), uint64(n.Prompt), uint64(n.MaxTokens), uint64(n.Sampling.Choice)} {
			shape.add(v)
		}
		shape.flag(n.Embed)
		for _, t := range n.Tokens {
			content.add(uint64(t))
		}
	}
	for _, op := range b.Ops {
		shape.add(uint64(op.Kind)<<32 | uint64(uint32(op.N)))
		shape.add(uint64(uint32(op.From))<<32 | uint64(uint32(op.To)))
		shape.add(uint64(uint32(op.Start))<<32 | uint64(len(op.Extents)))
		shape.flag(op.Next)
		shape.flag(op.Open)
		for _, x := range op.Extents {
			for _, p := range x.Pages {
				shape.add(uint64(p))
			}
		}
	}
	for i := range b.Work {
		w := &b.Work[i]
		shape.add(uint64(w.Seq))
		shape.add(uint64(uint32(w.Start))<<32 | uint64(uint32(w.N)))
		shape.add(uint64(w.Slot))
		shape.flag(w.Sample)
	}
}
