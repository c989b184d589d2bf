package bench

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const threeTurns = `{"block":64,"turns":[
 {"in":700,"out":250,"h":[[1,10]],"think":0},
 {"in":1000,"out":50,"h":[[1,15]],"think":288},
 {"in":900,"out":900,"h":[[1,4],[40,10]],"think":1.5}]}`

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", "") + "\n" }

func TestSessionsKeepWhatPromptsShare(t *testing.T) {
	short := `{"block":64,"turns":[{"in":70,"out":1,"h":[]}]}` + "\n"
	list, err := readSessions(strings.NewReader(short+oneLine(threeTurns)), 1, 3, 1000)
	if err != nil {
		t.Fatal(err)
	}
	s := list[0].scale(1, 10, 144)
	for i, want := range []int{70, 100, 90} {
		if len(s.prompts[i]) != want {
			t.Errorf("prompt %d has %d tokens, not %d", i, len(s.prompts[i]), want)
		}
	}
	// Ten blocks of 64 are 640 tokens, and 64 of the short ones; four are 26.
	if want := []int{0, 64, 26}; !slices.Equal(s.common, want) {
		t.Errorf("common starts %v, not %v", s.common, want)
	}
	if want := []int{25, 5, 90}; !slices.Equal(s.outputs, want) || s.thinks[1] != 2*time.Second {
		t.Errorf("outputs %v, think times %v", s.outputs, s.thinks)
	}
	if other := list[0].scale(2, 10, 144); commonStart(other.prompts[0], s.prompts[0]) != 0 {
		t.Error("two sessions share text")
	}
}

func TestSessionsRefuse(t *testing.T) {
	for name, text := range map[string]string{
		"no sessions":     "",
		"long prompts":    oneLine(strings.Replace(threeTurns, `"in":1000`, `"in":5000`, 1)),
		"no blocks":       oneLine(strings.Replace(threeTurns, `"block":64`, `"block":0`, 1)),
		"too many blocks": oneLine(strings.Replace(threeTurns, `[1,10]`, `[1,11]`, 1)),
		"no JSON":         "{\n",
	} {
		if _, err := readSessions(strings.NewReader(text), 1, 3, 1000); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func FuzzSessions(f *testing.F) {
	f.Add(oneLine(threeTurns))
	f.Fuzz(func(t *testing.T, text string) {
		list, err := readSessions(strings.NewReader(text), 1, 1, 4000)
		if err != nil {
			return
		}
		s := list[0].scale(1, 100, 144)
		for i, p := range s.prompts {
			if len(p) < 2 || s.common[i] >= len(p) || s.outputs[i] < 1 || s.thinks[i] < 0 {
				t.Fatalf("turn %d of %+v", i, s)
			}
		}
	})
}
