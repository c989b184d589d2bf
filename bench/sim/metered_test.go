package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ieg"
	"ieg/kernel"
	"ieg/kernel/meter"
)

// The meter, which only watches, and the machine count the same prompts, and the
// same of their tokens as cached, whatever dies, is cancelled or is wrong.
func TestMeterAgrees(t *testing.T) {
	var cached, brought uint64
	seeds(t, func(seed uint64) error {
		cfg := deep(seed)
		if seed%2 == 1 {
			plague(&cfg, rand.New(rand.NewPCG(seed, 2)))
		}
		watch := meter.New(meter.DefaultConfig())
		cfg.Observe = func(now ieg.Time, ev kernel.Event, r *kernel.Ready) { watch.Observe(now, ev, r) }
		w, err := run(cfg)
		if err != nil {
			return err
		}
		var prompt, found uint64
		for _, e := range watch.Snapshot().Engines {
			prompt, found = prompt+e.PromptTokens, found+e.CachedTokens
			brought += e.BroughtTokens
		}
		cached += found
		if st := w.m.Status().Totals; uint64(st.PromptTokens) != prompt || uint64(st.CachedTokens) != found {
			return fmt.Errorf("the machine counts %d tokens of prompts, %d of them cached; the meter %d and %d", st.PromptTokens, st.CachedTokens, prompt, found)
		}
		return nil
	})
	if *seedFlag < 0 && (cached == 0 || brought == 0) {
		t.Errorf("%d tokens were cached, %d brought", cached, brought)
	}
}
