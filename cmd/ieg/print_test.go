package main

import (
	"testing"

	"ieg"
)

func TestCut(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{"ready", "ready"},
		{"0123456789", "0123456789"},
		{"down: a\nlong reason", "down: a l…"},
		{"ééééééééééé", "ééééééééé…"},
	} {
		if got := cut(row.in, 10); got != row.want {
			t.Errorf("%q: %q, want %q", row.in, got, row.want)
		}
	}
}

func TestDeviceNameHasTheVendorOnce(t *testing.T) {
	for _, row := range []struct{ vendor, model, want string }{
		{"AMD", "AMD EPYC 9B45", "CPU AMD EPYC 9B45"},
		{"Intel", "Xeon", "CPU Intel Xeon"},
		{"", "", "CPU"},
	} {
		if got := deviceName(ieg.ResourceSpec{Type: "CPU", Vendor: row.vendor, Model: row.model}); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}
