package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ieg"
	"ieg/devices/engine"
	"ieg/devices/engine/enginetest"
)

// TestChildWithoutArena: an engine loads whatever became of the arena, keeps
// its KV then and says why.
func TestChildWithoutArena(t *testing.T) {
	path := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(path, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	short, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer short.Close()
	for note, edit := range map[string]func(*engine.Config){
		"the node shares no arena":                               func(c *engine.Config) { c.Arena = nil },
		"can't be mapped: descriptor 5 has 4096 bytes, not 8192": func(c *engine.Config) { c.ArenaBytes = 8192 },
		"can't be mapped: pages of 0 bytes":                      func(c *engine.Config) { c.ArenaPage = 0 },
		"this build of the engine can't map the node's arena":    func(c *engine.Config) { c.Env = []string{"IEG_TEST_NO_ARENA=1"} },
		"": func(*engine.Config) {},
	} {
		cfg := backend("synth")
		cfg.Arena, cfg.ArenaBytes, cfg.ArenaPage = short, 4096, 4096
		edit(&cfg)
		c := enginetest.StartChild(t, cfg)
		info := enginetest.Await[engine.Up](c).Info
		if !strings.Contains(info.KVNote, note) || (info.KVToken > 0) != (note == "") {
			t.Errorf("KV of %d bytes a token, note %q; want %q", info.KVToken, info.KVNote, note)
			continue
		}
		b := ieg.Batch{Engine: info.ID, Epoch: info.Epoch, Step: 1, Ops: []ieg.KVOp{{Kind: ieg.KVSave, N: 1}}}
		if err := c.Submit(&b); err != nil {
			t.Fatal(err)
		}
		if d := enginetest.Await[engine.Done](c).Step; d.Outcome != ieg.StepFailed || !strings.Contains(d.Err, note) {
			t.Errorf("a save: outcome %d, %q", d.Outcome, d.Err)
		}
	}
}
