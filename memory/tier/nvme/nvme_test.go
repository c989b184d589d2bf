package nvme

import (
	"testing"

	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
)

var _ tier.Store = (*Store)(nil)

// mustOpen opens a store with small files; it is closed with the test.
func mustOpen(t testing.TB, cfg Config) *Store {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.FileBytes == 0 {
		cfg.FileBytes = 256 << 10
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSuite(t *testing.T) {
	tiertest.Suite(t, func(t *testing.T, dir string) tier.Store { return mustOpen(t, Config{Dir: dir}) })
}

func TestSuiteSealed(t *testing.T) {
	key := []byte("0123456789abcdef0123456789abcdef")
	tiertest.Suite(t, func(t *testing.T, dir string) tier.Store { return mustOpen(t, Config{Dir: dir, Key: key}) })
}

// putAll puts blocks of 30,000 bytes.
func putAll(t testing.TB, s tier.Store, ns ...uint64) {
	t.Helper()
	var items []tier.Item
	for _, n := range ns {
		items = append(items, tiertest.Make(n, 30_000))
	}
	if err := s.Put(t.Context(), items); err != nil {
		t.Fatal(err)
	}
}
