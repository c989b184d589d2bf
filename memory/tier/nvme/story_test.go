package nvme

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"ieg"
	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
)

// story runs a script against a store whose reclaimer runs when it is told.
type story struct {
	t     *testing.T
	dir   string
	store *Store
	sizes map[uint64]int64
}

func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		st := &story{t: t, dir: filepath.Join(t.TempDir(), "kv"), sizes: map[uint64]int64{}}
		defer func() {
			if st.store != nil {
				st.store.Close()
			}
		}()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := st.run(d)
			if err != nil {
				return out + "error: " + strings.ReplaceAll(err.Error(), st.dir, "DIR") + "\n"
			}
			return out
		})
	})
}

func (st *story) run(d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "open":
		cfg := Config{Dir: st.dir, FileBytes: 64 << 10, Reserve: MinReserve}
		if d.HasArg("key") {
			var key string
			d.ScanArgs(st.t, "key", &key)
			cfg.Key = []byte(key)
		}
		s, err := open(cfg)
		if err != nil {
			return "", err
		}
		if st.store != nil {
			return "", errors.Join(errors.New("opened twice"), s.Close())
		}
		st.store = s
		return st.list(), nil
	case "close":
		s := st.store
		st.store = nil
		return "", s.Close()
	case "put":
		return st.put(d)
	case "delete":
		var hs []ieg.BlockHash
		for _, a := range d.CmdArgs {
			hs = append(hs, st.item(a.Key).Block.Hash)
		}
		return "", st.store.Delete(st.t.Context(), hs)
	case "reclaim":
		st.store.pressed.Store(d.HasArg("pressed"))
		n := 0
		for {
			more, err := st.store.reclaim(st.t.Context())
			if err != nil || !more {
				return fmt.Sprintf("%d emptied\n", n), err
			}
			n++
		}
	case "list":
		return st.list(), nil
	case "read":
		return st.read(), nil
	case "folder":
		return st.folder(), nil
	}
	return st.harm(d)
}

// harm changes files behind the store's back.
func (st *story) harm(d *datadriven.TestData) (string, error) {
	path := filepath.Join(st.dir, d.CmdArgs[0].Key)
	switch d.Cmd {
	case "remove":
		return "", os.RemoveAll(path)
	case "write":
		return "", errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(d.Input), 0o600))
	case "cut":
		var n int64
		d.ScanArgs(st.t, "to", &n)
		return "", os.Truncate(path, n)
	case "flip":
		var at int
		d.ScanArgs(st.t, "at", &at)
		b, err := os.ReadFile(path)
		if err == nil {
			b[at] ^= 1
			err = os.WriteFile(path, b, 0o600)
		}
		return "", err
	}
	return "", fmt.Errorf("unknown command %s", d.Cmd)
}

func (st *story) item(name string) tier.Item {
	var n uint64
	if _, err := fmt.Sscanf(name, "b%d", &n); err != nil {
		st.t.Fatal(err)
	}
	return tiertest.Make(n, st.sizes[n])
}

// put takes arguments like b7=20000: block 7 of that length.
func (st *story) put(d *datadriven.TestData) (string, error) {
	var items []tier.Item
	for _, a := range d.CmdArgs {
		var n uint64
		var bytes int64
		if _, err := fmt.Sscanf(a.Key+" "+a.Vals[0], "b%d %d", &n, &bytes); err != nil {
			st.t.Fatal(err)
		}
		st.sizes[n] = bytes
		items = append(items, tiertest.Make(n, bytes))
	}
	return "", st.store.Put(st.t.Context(), items)
}

// list shows files and counts.
func (st *story) list() string {
	var b strings.Builder
	s := st.store
	for id, x := range s.files {
		fmt.Fprintf(&b, "file %d: %d blocks, %d live of %d bytes\n", id, x.blocks, x.live, x.end)
	}
	lines := strings.SplitAfter(b.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "") + fmt.Sprintf("%d blocks, %d bytes live, %d in files\n", s.blocks.Load(), s.live.Load(), s.taking.Load())
}

// read says of each block ever put where it is and what is wrong with it.
func (st *story) read() string {
	var b strings.Builder
	for n := range uint64(100) {
		size, known := st.sizes[n]
		if !known {
			continue
		}
		it := tiertest.Make(n, size)
		where := "nowhere"
		if e, _, err := st.store.look(it.Block.Hash); err == nil {
			where = fmt.Sprintf("file %d at %d", e.file, e.off)
		}
		fmt.Fprintf(&b, "b%d %s", n, where)
		err := tiertest.Holds(st.t.Context(), st.store, &it)
		switch {
		case errors.Is(err, tier.ErrMissing):
			b.WriteString(": missing")
		case err != nil:
			b.WriteString(": " + err.Error())
		}
		b.WriteString("\n")
	}
	return b.String()
}

// folder lists the files that are not the index's, with lengths and rights.
func (st *story) folder() string {
	var b bytes.Buffer
	filepath.WalkDir(st.dir, func(path string, f os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(st.dir, path)
		info, err := f.Info()
		if err != nil {
			return err
		}
		if f.IsDir() {
			fmt.Fprintf(&b, "%s %s/\n", info.Mode().Perm(), rel)
			if f.Name() == "index" {
				return filepath.SkipDir
			}
			return nil
		}
		fmt.Fprintf(&b, "%s %s %d\n", info.Mode().Perm(), rel, info.Size())
		return nil
	})
	return b.String()
}
