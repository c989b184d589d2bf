//go:build embedlib

package lib

import (
	"testing"
)

// The binary's own archive unpacks and is what the manifest says.
func TestEmbedded(t *testing.T) {
	d, err := Dir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(d); err != nil {
		t.Fatal(err)
	}
}
