package lib

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"ieg"
)

const unpackPrefix = ".unpack-"

// unpackLocked makes own complete, alone among all processes. What others left
// half done is removed: under the lock nobody is at work on it.
func unpackLocked(root, own string, archive, manifest []byte) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(root, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // drops the lock
	if err := flock(lock); err != nil {
		return err
	}
	if check(own, manifest) == nil {
		return nil // another process was first
	}
	if err := sweep(root); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(root, unpackPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := unpack(filepath.Join(tmp, "new"), archive, manifest); err != nil {
		return err
	}
	return swap(filepath.Join(tmp, "new"), own, filepath.Join(tmp, "old"))
}

func flock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func sweep(root string) error {
	list, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, d := range list {
		if strings.HasPrefix(d.Name(), unpackPrefix) {
			if err := os.RemoveAll(filepath.Join(root, d.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// swap puts the new folder where it belongs. A damaged one that stands there
// is moved aside first; processes that mapped its files keep them.
func swap(fresh, own, aside string) error {
	if err := os.Rename(own, aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, own); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(own))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// unpack writes the archive's files to dir. Each must be in the manifest with
// its size and digest, and all of the manifest must come.
func unpack(dir string, archive, manifest []byte) error {
	list, err := parseManifest(manifest)
	if err != nil {
		return err
	}
	missing := make(map[string]entry, len(list))
	for _, e := range list {
		missing[e.name] = e
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	zr, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	tr := tar.NewReader(zr)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		name := strings.TrimPrefix(h.Name, "./")
		e, ok := missing[name]
		if !ok {
			return fmt.Errorf("%w: archive holds %q, which is not in the manifest or came before", ieg.ErrProtocol, h.Name)
		}
		delete(missing, name)
		if err := unpackEntry(dir, e, h, tr); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: archive lacks %d files of the manifest", ieg.ErrProtocol, len(missing))
	}
	return writeSynced(filepath.Join(dir, manifestName), bytes.NewReader(manifest), nil)
}

func unpackEntry(dir string, e entry, h *tar.Header, r io.Reader) error {
	path := filepath.Join(dir, e.name)
	if e.link != "" {
		if h.Typeflag != tar.TypeSymlink || h.Linkname != e.link {
			return fmt.Errorf("%w: archive: %s is no link to %s", ieg.ErrProtocol, e.name, e.link)
		}
		return os.Symlink(e.link, path)
	}
	if h.Typeflag != tar.TypeReg || h.Size != e.size {
		return fmt.Errorf("%w: archive: %s has %d bytes, want %d", ieg.ErrProtocol, e.name, h.Size, e.size)
	}
	sum := sha256.New()
	if err := writeSynced(path, r, sum); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != e.sha256 {
		return fmt.Errorf("%w: archive: %s has sha256 %s, want %s", ieg.ErrProtocol, e.name, got, e.sha256)
	}
	return nil
}

// writeSynced writes a new file through to the disk: a folder that is renamed
// into place must not lose its content in a power cut.
func writeSynced(path string, r io.Reader, sum io.Writer) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	w := io.Writer(f)
	if sum != nil {
		w = io.MultiWriter(f, sum)
	}
	_, err = io.Copy(w, r)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
