package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ieg/devices/engine/lib"
)

// The whole path with a real model, where one was fetched.
func TestRealModel(t *testing.T) {
	path, cache, model := realEngine(t)
	dir := t.TempDir()
	out, err := exec.Command(path, "chat", "--model", model, "--ctx", "512", "--slots", "2", "--layout", "streams", "--temperature", "0",
		"--max-tokens", "24", "--json", "--cache-dir", cache, "--data-dir", filepath.Join(dir, "d"), "--admin", filepath.Join(dir, "s"),
		"Name three colours.").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), `"finish_reason": "`) || !strings.Contains(string(out), `"text": "`) || strings.Contains(string(out), `"text": ""`) {
		t.Errorf("answer: %s", out)
	}
}

// realEngine is this program, the cache and a model in it; the test is skipped
// where nothing was fetched.
func realEngine(t *testing.T) (path, cache, model string) {
	t.Helper()
	cache, err := lib.CacheDir()
	if err != nil {
		t.Skip(err)
	}
	if _, err := lib.Dir(cache); err != nil {
		t.Skipf("no libraries: %v", err)
	}
	if model = firstModel(cache); model == "" {
		t.Skipf("no model in %s; run: make models", modelDir(cache))
	}
	if path, err = exec.LookPath("ieg"); err != nil {
		t.Fatal(err)
	}
	return path, cache, model
}
