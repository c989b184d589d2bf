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
	cache, err := lib.CacheDir()
	if err != nil {
		t.Skip(err)
	}
	if _, err := lib.Dir(cache); err != nil {
		t.Skipf("no libraries: %v", err)
	}
	model := firstModel(cache)
	if model == "" {
		t.Skipf("no model in %s; run: make models", modelDir(cache))
	}
	path, err := exec.LookPath("ieg")
	if err != nil {
		t.Fatal(err)
	}
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
