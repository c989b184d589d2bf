package openai

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"os"
	"strings"
)

// Keys is a set of API keys. Only their digests are kept.
type Keys struct{ digests [][sha256.Size]byte }

// LoadKeys reads a key file: one key a line; empty lines and lines that begin
// with # are skipped.
func LoadKeys(path string) (*Keys, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("API key file: %w", err)
	}
	defer f.Close()
	k, err := ReadKeys(f)
	if err != nil {
		return nil, fmt.Errorf("API key file %s: %w", path, err)
	}
	return k, nil
}

// ReadKeys reads keys as LoadKeys does. A source without a key is an error,
// since it would let everybody in.
func ReadKeys(r io.Reader) (*Keys, error) {
	k := &Keys{}
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.ContainsAny(line, " \t") || len(line) > MaxIDBytes {
			return nil, fmt.Errorf("a key has no white space and at most %d bytes", MaxIDBytes)
		}
		if len(k.digests) == MaxKeys {
			return nil, fmt.Errorf("more than %d keys", MaxKeys)
		}
		k.digests = append(k.digests, sha256.Sum256([]byte(line)))
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if len(k.digests) == 0 {
		return nil, fmt.Errorf("no key in it; write one key a line")
	}
	return k, nil
}

// Len is the number of keys; a nil set has none.
func (k *Keys) Len() int {
	if k == nil {
		return 0
	}
	return len(k.digests)
}

// allow tells whether a key is in the set. The time it takes does not depend
// on the key.
func (k *Keys) allow(key string) bool {
	d := sha256.Sum256([]byte(key))
	ok := 0
	for i := range k.digests {
		ok |= subtle.ConstantTimeCompare(d[:], k.digests[i][:])
	}
	return ok == 1
}
