package lib

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ieg"
)

const manifestName = "MANIFEST"

// entry is one line of a manifest: a file with size and digest, or a link.
type entry struct {
	name   string
	link   string // target, within the folder; "" for a file
	size   int64  // bytes
	sha256 string // lower-case hex
}

// parseManifest reads lines "sha256 size name" and "link target name". Names
// are plain: no path leaves the folder.
func parseManifest(text []byte) ([]entry, error) {
	if len(text) > maxManifestBytes {
		return nil, fmt.Errorf("%w: manifest of %d bytes, at most %d", ieg.ErrProtocol, len(text), maxManifestBytes)
	}
	var list []entry
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		e, err := parseEntry(line)
		if err != nil {
			return nil, fmt.Errorf("%w: manifest line %d: %s", ieg.ErrProtocol, i+1, err)
		}
		list = append(list, e)
	}
	if len(list) > maxFiles {
		return nil, fmt.Errorf("%w: manifest of %d files, at most %d", ieg.ErrProtocol, len(list), maxFiles)
	}
	return list, nil
}

func parseEntry(line string) (entry, error) {
	f := strings.Split(line, " ")
	if len(f) != 3 {
		return entry{}, fmt.Errorf("want 3 words, have %d", len(f))
	}
	if !plainName(f[2]) || f[2] == manifestName {
		return entry{}, fmt.Errorf("bad name %q", f[2])
	}
	if f[0] == "link" {
		if !plainName(f[1]) {
			return entry{}, fmt.Errorf("bad target %q", f[1])
		}
		return entry{name: f[2], link: f[1]}, nil
	}
	if raw, err := hex.DecodeString(f[0]); err != nil || len(raw) != sha256.Size {
		return entry{}, fmt.Errorf("bad sha256 %q", f[0])
	}
	size, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil || size < 0 || size > maxFileBytes {
		return entry{}, fmt.Errorf("bad size %q, at most %d", f[1], maxFileBytes)
	}
	return entry{name: f[2], size: size, sha256: strings.ToLower(f[0])}, nil
}

func plainName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\\x00")
}

// check tells whether dir holds what its manifest says, by names and sizes: a
// look at the folder, no read of the libraries. With want the manifest itself
// must be that one.
func check(dir string, want []byte) error {
	list, err := readManifest(dir, want)
	if err != nil {
		return err
	}
	for _, e := range list {
		path := filepath.Join(dir, e.name)
		if e.link != "" {
			if target, err := os.Readlink(path); err != nil || target != e.link {
				return fmt.Errorf("%s: want a link to %s", path, e.link)
			}
			continue
		}
		st, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if !st.Mode().IsRegular() || st.Size() != e.size {
			return fmt.Errorf("%s: %d bytes, want %d", path, st.Size(), e.size)
		}
	}
	return nil
}

func readManifest(dir string, want []byte) ([]entry, error) {
	f, err := os.Open(filepath.Join(dir, manifestName))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err != nil {
		return nil, err
	}
	if want != nil && !bytes.Equal(text, want) {
		return nil, errors.New(dir + ": another build of the libraries")
	}
	return parseManifest(text)
}

// Verify reads every library of a folder and compares it with the manifest:
// some 20 MB, for "ieg doctor" and after a crash.
func Verify(dir string) error {
	list, err := readManifest(dir, nil)
	if err != nil {
		return err
	}
	if err := check(dir, nil); err != nil {
		return err
	}
	for _, e := range list {
		if e.link != "" {
			continue
		}
		f, err := os.Open(filepath.Join(dir, e.name))
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return err
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != e.sha256 {
			return fmt.Errorf("%w: %s: sha256 is %s, want %s; remove the folder and start again",
				ieg.ErrProtocol, filepath.Join(dir, e.name), got, e.sha256)
		}
	}
	return nil
}
