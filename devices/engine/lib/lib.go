package lib

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"ieg"
)

// CacheDir is where the project keeps what it fetched: $XDG_CACHE_HOME/ieg, or
// ~/.cache/ieg.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder: %w; set XDG_CACHE_HOME", err)
	}
	return filepath.Join(dir, "ieg"), nil
}

// Embedded tells whether this binary carries the libraries.
func Embedded() bool { return len(embeddedArchive) > 0 }

// Dir is the folder of the CPU libraries below cacheDir (see CacheDir). A
// binary that carries them unpacks them once; one that doesn't wants them
// fetched. A start that finds them complete reads one small file and looks at
// the names. Any number of processes may call it at once.
func Dir(cacheDir string) (string, error) {
	return dir(cacheDir, embeddedArchive, embeddedManifest)
}

func dir(cacheDir string, archive, manifest []byte) (string, error) {
	root := filepath.Join(cacheDir, "lib")
	fetched := filepath.Join(root, folderName)
	if len(archive) == 0 {
		if err := check(fetched, nil); err != nil {
			return "", fmt.Errorf("%w: no llama.cpp libraries (%v); run: make engine", ieg.ErrUnsupported, err)
		}
		return fetched, nil
	}
	if check(fetched, manifest) == nil {
		return fetched, nil
	}
	sum := sha256.Sum256(manifest)
	own := fetched + "-" + hex.EncodeToString(sum[:])[:digestChars]
	if check(own, manifest) == nil {
		return own, nil
	}
	if err := unpackLocked(root, own, archive, manifest); err != nil {
		return "", fmt.Errorf("unpack llama.cpp libraries: %w", err)
	}
	return own, nil
}

const folderName = "linux-x64-cpu-" + Version
