package spec

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestQuantities(t *testing.T) {
	bytes := []struct {
		text  string
		value int64
		print string
	}{
		{"40GB", 40e9, "40GB"}, {"40 GB", 40e9, "40GB"}, {"1GiB", 1 << 30, "1GiB"}, {"1.5GiB", 3 << 29, "1.5GiB"},
		{"30.4GB", 30_400_000_000, "30.4GB"}, {"512", 512, "512B"}, {"1000", 1000, "1KB"}, {"1024", 1024, "1KiB"},
		{"0", 0, "0B"}, {"8EiB", 0, ""}, {"7EiB", 7 << 60, "7EiB"}, {"1e3MB", 1e9, "1GB"}, {"256kB", 256000, "256KB"},
		{"0.5B", 0, ""}, {"-1GB", 0, ""}, {"", 0, ""}, {"GB", 0, ""}, {"1GBit", 0, ""}, {"1e9999B", 0, ""},
		{"70272", 70272, "70272B"},
	}
	for _, c := range bytes {
		v, err := ParseBytes(c.text)
		if c.print == "" {
			if err == nil {
				t.Errorf("ParseBytes(%q) = %d, want an error", c.text, v)
			}
			continue
		}
		if err != nil || v != c.value || FormatBytes(v) != c.print {
			t.Errorf("ParseBytes(%q) = %d, %v, prints %q; want %d, %q", c.text, v, err, FormatBytes(v), c.value, c.print)
		}
	}
	floats := []struct {
		text   string
		value  float64
		print  string
		parse  func(string) (float64, error)
		format func(float64) string
	}{
		{"120T", 120e12, "120T", ParseCount, FormatCount},
		{"312T", 312e12, "312T", ParseCount, FormatCount},
		{"5.7e14", 5.7e14, "570T", ParseCount, FormatCount},
		{"1.5", 1.5, "1.5", ParseCount, FormatCount},
		{"2E", 2e18, "2E", ParseCount, FormatCount},
		{"0.25", 0.25, "0.25", ParseCount, FormatCount},
		{"2TB/s", 2e12, "2TB/s", ParseRate, FormatRate},
		{"400Gb/s", 50e9, "50GB/s", ParseRate, FormatRate},
		{"3.35TB/s", 3.35e12, "3.35TB/s", ParseRate, FormatRate},
		{"1GiB/s", 1 << 30, "1.073741824GB/s", ParseRate, FormatRate},
		{"45%", 0.45, "45%", ParsePercent, FormatPercent},
		{"62%", 0.62, "62%", ParsePercent, FormatPercent},
		{"0.45", 0.45, "45%", ParsePercent, FormatPercent},
		{"0.1%", 0.001, "0.1%", ParsePercent, FormatPercent},
		{"150%", 1.5, "150%", ParsePercent, FormatPercent},
	}
	for _, c := range floats {
		v, err := c.parse(c.text)
		if err != nil || v != c.value || c.format(v) != c.print {
			t.Errorf("%q = %v, %v, prints %q; want %v, %q", c.text, v, err, c.format(v), c.value, c.print)
		}
	}
	for text, print := range map[string]string{
		"200ms": "200ms", "60s": "60s", "120s": "120s", "1m30s": "90s", "50ms": "50ms", "1.5ms": "1.5ms",
		"0": "0s", "1us": "1us", "999ns": "999ns", "2562047h": "9223369200s",
	} {
		d, err := ParseSpan(text)
		if err != nil || FormatSpan(d) != print {
			t.Errorf("ParseSpan(%q) = %v, %v, prints %q; want %q", text, d, err, FormatSpan(d), print)
		}
	}
	for _, bad := range []string{"2TB", "400Gx/s", "TB/s", "1e/s"} {
		if v, err := ParseRate(bad); err == nil {
			t.Errorf("ParseRate(%q) = %v, want an error", bad, v)
		}
	}
}

// TestQuantitiesExact prints random values of all magnitudes and reads them
// back to the same bits.
func TestQuantitiesExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		n := r.Int64() >> r.IntN(63)
		if v, err := ParseBytes(FormatBytes(n)); err != nil || v != n {
			t.Fatalf("%d bytes print as %q, read as %d, %v", n, FormatBytes(n), v, err)
		}
		d := time.Duration(r.Int64()>>r.IntN(63)) * time.Duration(1-2*r.IntN(2))
		if v, err := ParseSpan(FormatSpan(d)); err != nil || v != d {
			t.Fatalf("%d ns print as %q, read as %d, %v", d, FormatSpan(d), v, err)
		}
		f := math.Exp((r.Float64() - 0.5) * 120)
		if v, err := ParseCount(FormatCount(f)); err != nil || v != f {
			t.Fatalf("%v prints as %q, reads as %v, %v", f, FormatCount(f), v, err)
		}
		if v, err := ParseRate(FormatRate(f)); err != nil || v != f {
			t.Fatalf("%v prints as %q, reads as %v, %v", f, FormatRate(f), v, err)
		}
		if v, err := ParsePercent(FormatPercent(f)); err != nil || v != f {
			t.Fatalf("%v prints as %q, reads as %v, %v", f, FormatPercent(f), v, err)
		}
	}
}

// FuzzQuantity: what is read prints to something that reads back the same.
func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"120T", "40GB", "2TB/s", "200ms", "45%", "1.5GiB", "1e-7", "9.9e18B", "400Gb/s", "-3h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseBytes(s); err == nil {
			if w, err := ParseBytes(FormatBytes(v)); err != nil || w != v || v < 0 {
				t.Fatalf("bytes %q: %d prints %q, reads %d, %v", s, v, FormatBytes(v), w, err)
			}
		}
		if v, err := ParseSpan(s); err == nil {
			if w, err := ParseSpan(FormatSpan(v)); err != nil || w != v {
				t.Fatalf("span %q: %d prints %q, reads %d, %v", s, v, FormatSpan(v), w, err)
			}
		}
		for _, kind := range []struct {
			parse  func(string) (float64, error)
			format func(float64) string
		}{{ParseCount, FormatCount}, {ParseRate, FormatRate}, {ParsePercent, FormatPercent}} {
			if v, err := kind.parse(s); err == nil {
				if w, err := kind.parse(kind.format(v)); err != nil || w != v {
					t.Fatalf("%q: %v prints %q, reads %v, %v", s, v, kind.format(v), w, err)
				}
			}
		}
	})
}
