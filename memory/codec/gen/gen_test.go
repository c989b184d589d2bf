package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCommittedFilesAreThese(t *testing.T) {
	for name, want := range generate() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what this command writes: run go generate", name)
		}
	}
}
