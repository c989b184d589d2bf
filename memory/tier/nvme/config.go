package nvme

import (
	"errors"
	"fmt"
	"log/slog"
)

// Config says where and how blocks are kept.
type Config struct {
	// Dir is the folder, made if it isn't there. Nobody else may use it.
	Dir string
	// Size bounds what the store takes of the disk, in bytes, space to be
	// reclaimed included; 0: all but Reserve. It should be twice of what is
	// kept, since half of an extent file may be dead before it is reclaimed.
	Size int64
	// Reserve is the free disk that Put leaves, in bytes; 0: 1 GiB or 2 % of
	// the disk, whichever is less, but no less than MinReserve.
	Reserve int64
	// Key encrypts what is stored: 16, 24 or 32 bytes; nil: no encryption.
	Key []byte
	// FileBytes is the size of an extent file, which one larger block may
	// exceed; 0: 256 MiB, less if Size is small.
	FileBytes int64
	// Log takes what is given up: lost blocks, a broken index. nil: nowhere.
	Log *slog.Logger
}

// Validate fills in defaults and says what is wrong.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if c.Dir == "" {
		bad("Dir is empty")
	}
	if c.Size < 0 {
		bad("Size is %d; it must not be negative", c.Size)
	}
	if c.Reserve != 0 && c.Reserve < MinReserve {
		bad("Reserve is %d; the least is %d", c.Reserve, int64(MinReserve))
	}
	switch len(c.Key) {
	case 0, 16, 24, 32:
	default:
		bad("Key has %d bytes; it must have 16, 24 or 32", len(c.Key))
	}
	if c.FileBytes == 0 {
		c.FileBytes = FileBytes
		if c.Size > 0 {
			c.FileBytes = max(minFileBytes, min(FileBytes, c.Size/filesOfSize))
		}
	}
	if c.FileBytes < minFileBytes {
		bad("FileBytes is %d; the least is %d", c.FileBytes, int64(minFileBytes))
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return errors.Join(errs...)
}
