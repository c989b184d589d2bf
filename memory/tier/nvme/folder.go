package nvme

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"

	"ieg/memory/tier"
)

// schema says what wrote a folder. A change of any encoding changes it.
const schema = "ieg kv blocks 2\n"

// folder is the place of a store, locked.
type folder struct {
	dir  string
	lock *os.File
}

var (
	extentName = regexp.MustCompile(`^[0-9a-f]{16}\.kv$`)
	oldName    = regexp.MustCompile(`^old-[0-9]+$`)
)

func (d *folder) path(name ...string) string {
	return filepath.Join(append([]string{d.dir}, name...)...)
}

func (d *folder) extent(id uint64) string {
	return d.path("extents", fmt.Sprintf("%016x.kv", id))
}

// openFolder makes the folder, locks it and moves aside what another schema
// left.
func openFolder(dir string, log *slog.Logger) (*folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, err
	}
	d := &folder{dir: dir}
	var err error
	if d.lock, err = os.OpenFile(d.path("lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	err = again(func() error { return unix.Flock(int(d.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%w: %s", tier.ErrLocked, dir)
	}
	if err == nil {
		err = d.adopt(log)
	}
	if err != nil {
		return nil, errors.Join(err, d.lock.Close())
	}
	return d, nil
}

func (d *folder) close() error { return d.lock.Close() }

// adopt leaves a folder of this schema.
func (d *folder) adopt(log *slog.Logger) error {
	was, err := os.ReadFile(d.path("schema"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := d.unclaimed(); err != nil {
			return err
		}
	case err != nil:
		return err
	case string(was) == schema:
		return d.makeFolders()
	default:
		old, err := d.setAside("index", "extents")
		if err != nil {
			return err
		}
		log.Warn("the folder of the NVMe tier was written in another form: what is in it is not read; it is moved aside and removed in the background",
			"dir", d.dir, "found", shown(was), "expected", shown([]byte(schema)), "moved_to", old)
	}
	// Last: until the new word is there the old one says to begin again.
	if err := d.write("schema", []byte(schema)); err != nil {
		return err
	}
	return d.makeFolders()
}

// shown is what a file schema says, as far as a line of the log should.
func shown(text []byte) string {
	return string(bytes.TrimSpace(text[:min(len(text), 2*len(schema))]))
}

// unclaimed refuses a folder in which others use our names.
func (d *folder) unclaimed() error {
	for _, name := range []string{"index", "extents"} {
		if _, err := os.Lstat(d.path(name)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is there, but not the file schema: the folder is not ours", d.path(name))
		}
	}
	return nil
}

func (d *folder) makeFolders() error {
	for _, name := range []string{"index", "extents"} {
		if err := os.Mkdir(d.path(name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return syncDir(d.dir)
}

// setAside moves what is named to a folder, old, that removeOld removes.
func (d *folder) setAside(names ...string) (old string, err error) {
	for n := 0; ; n++ {
		old = d.path("old-" + strconv.Itoa(n))
		err := os.Mkdir(old, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		for _, name := range names {
			err := os.Rename(d.path(name), filepath.Join(old, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
		}
		return old, syncDir(d.dir)
	}
}

// removeOld removes what was set aside, file by file until ctx ends: there may
// be terabytes.
func (d *folder) removeOld(ctx context.Context) error {
	list, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	for _, old := range list {
		if !oldName.MatchString(old.Name()) || !old.IsDir() {
			continue
		}
		err := filepath.WalkDir(d.path(old.Name()), func(path string, f fs.DirEntry, err error) error {
			if err != nil || f.IsDir() {
				return err
			}
			return errors.Join(ctx.Err(), os.Remove(path))
		})
		if err != nil {
			return err
		}
		if err := os.RemoveAll(d.path(old.Name())); err != nil {
			return err
		}
	}
	return nil
}

// write makes a small file, whole or not at all.
func (d *folder) write(name string, text []byte) error {
	tmp := d.path(name + ".new")
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, d.path(name)); err != nil {
		return err
	}
	return syncDir(d.dir)
}

// attempt counts an opening of the index and tells whether too many before it
// did not return: then the index itself ends the process.
func (d *folder) attempt() (tooMany bool, err error) {
	was, err := os.ReadFile(d.path("opening"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if len(was) >= openAttempts {
		was, tooMany = nil, true
	}
	return tooMany, os.WriteFile(d.path("opening"), append(bytes.Clone(was), '.'), 0o600)
}

func (d *folder) attempted() error {
	if err := os.Remove(d.path("opening")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
