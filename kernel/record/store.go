package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrNotFound: no such segment is kept.
var ErrNotFound = errors.New("no such segment is kept")

// store keeps segments. It is called under the recorder's lock.
type store interface {
	// begin ends the open segment and opens a new one; the oldest goes.
	begin(at time.Time) error
	write(b []byte) error
	count(events int64)
	finish() error
	list() ([]Segment, error)
	open(name string) (io.ReadCloser, error)
}

const suffix = ".iegrec"

// nameOf is a segment's name: it sorts by time.
func nameOf(at time.Time, n int) string {
	return fmt.Sprintf("%s-%03d%s", at.UTC().Format("20060102T150405.000"), n%1000, suffix)
}

// memory keeps segments as bytes.
type memory struct {
	keep int
	n    int
	segs []kept
}

type kept struct {
	Segment
	data []byte
}

func (m *memory) begin(at time.Time) error {
	m.close()
	m.n++
	m.segs = append(m.segs, kept{Segment: Segment{Name: nameOf(at, m.n), Start: at, Open: true}})
	if over := len(m.segs) - m.keep; over > 0 {
		m.segs = slices.Delete(m.segs, 0, over)
	}
	return nil
}

func (m *memory) close() {
	if k := len(m.segs); k > 0 {
		m.segs[k-1].Open = false
	}
}

func (m *memory) write(b []byte) error {
	s := &m.segs[len(m.segs)-1]
	s.data = append(s.data, b...)
	s.Bytes = int64(len(s.data))
	return nil
}

func (m *memory) count(events int64) { m.segs[len(m.segs)-1].Events += events }

func (m *memory) finish() error {
	m.close()
	return nil
}

func (m *memory) list() ([]Segment, error) {
	out := make([]Segment, len(m.segs))
	for i, s := range m.segs {
		out[i] = s.Segment
	}
	return out, nil
}

func (m *memory) open(name string) (io.ReadCloser, error) {
	for _, s := range m.segs {
		if s.Name == name {
			// Written bytes never change; later ones are appended behind.
			return io.NopCloser(bytes.NewReader(s.data)), nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrNotFound, name)
}

// folder keeps segments as files.
type folder struct {
	dir  string
	keep int
	n    int
	file *os.File
	now  Segment
}

func newFolder(dir string, keep int) (*folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("record: the folder can't be made: %w", err)
	}
	return &folder{dir: dir, keep: keep}, nil
}

func (f *folder) begin(at time.Time) error {
	if err := f.finish(); err != nil {
		return err
	}
	f.n++
	name := nameOf(at, f.n)
	file, err := os.OpenFile(filepath.Join(f.dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	f.file, f.now = file, Segment{Name: name, Start: at, Open: true}
	return f.prune()
}

// prune deletes the oldest files beyond what is kept.
func (f *folder) prune() error {
	names, err := f.names()
	if err != nil {
		return err
	}
	for len(names) > f.keep {
		if err := os.Remove(filepath.Join(f.dir, names[0])); err != nil {
			return err
		}
		names = names[1:]
	}
	return nil
}

// names lists the segments' files, oldest first.
func (f *folder) names() ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

func (f *folder) write(b []byte) error {
	if f.file == nil {
		return errors.New("no segment is open")
	}
	n, err := f.file.Write(b)
	f.now.Bytes += int64(n)
	return err
}

func (f *folder) count(events int64) { f.now.Events += events }

func (f *folder) finish() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file, f.now.Open = nil, false
	return err
}

func (f *folder) list() ([]Segment, error) {
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	var out []Segment
	for _, name := range names {
		if name == f.now.Name {
			out = append(out, f.now)
			continue
		}
		info, err := os.Stat(filepath.Join(f.dir, name))
		if err != nil {
			continue // deleted meanwhile
		}
		stamp, _, _ := strings.Cut(name, "-")
		start, err := time.Parse("20060102T150405.000", stamp)
		if err != nil {
			start = info.ModTime()
		}
		out = append(out, Segment{Name: name, Start: start, Bytes: info.Size()})
	}
	return out, nil
}

func (f *folder) open(name string) (io.ReadCloser, error) {
	if filepath.Base(name) != name || !strings.HasSuffix(name, suffix) {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	file, err := os.Open(filepath.Join(f.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	return file, err
}
