package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Better says in which direction a value improves.
type Better string

// The directions.
const (
	Higher Better = "higher"
	Lower  Better = "lower"
)

// Row is one benchmark result.
type Row struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Bound   float64 `json:"bound"`
	Better  Better  `json:"better"`
	OK      bool    `json:"ok"`
	Against string  `json:"against"`
	// BoundBy names what limits a value that misses its bound, with the
	// record that explains it.
	BoundBy string `json:"bound_by,omitempty"`
	Command string `json:"command"`

	// Low and High are the extremes over the rounds; Detail is free text.
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Rounds int     `json:"rounds"`
	Detail string  `json:"detail,omitempty"`
	// Error is set when the row could not be measured.
	Error string `json:"error,omitempty"`
}

// Measure fills value, extremes and verdict from the rounds.
func (r *Row) Measure(rounds []float64) {
	if len(rounds) == 0 {
		r.Error = "no round was measured"
		return
	}
	s := slices.Sorted(slices.Values(rounds))
	r.Value, r.Low, r.High, r.Rounds = Median(s), s[0], s[len(s)-1], len(s)
	r.OK = !math.IsNaN(r.Value) && (r.Better == Higher && r.Value >= r.Bound || r.Better == Lower && r.Value <= r.Bound)
}

// Median of the values; NaN of none.
func Median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	switch n := len(s); {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return s[n/2]
	default:
		return (s[n/2-1] + s[n/2]) / 2
	}
}

// Percentile is the nearest-rank percentile of the values, p in 0 … 100.
func Percentile(v []float64, p float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	i := int(math.Ceil(p/100*float64(len(s)))) - 1
	return s[min(max(i, 0), len(s)-1)]
}

// Line is the row for people.
func (r Row) Line() string {
	mark := "ok  "
	switch {
	case r.Error != "":
		return fmt.Sprintf("FAIL  %-28s %s", r.Name, r.Error)
	case !r.OK && r.BoundBy != "":
		mark = "bound"
	case !r.OK:
		mark = "MISS"
	}
	sign := "≥"
	if r.Better == Lower {
		sign = "≤"
	}
	line := fmt.Sprintf("%-5s %-28s %10.4g %-7s %s %-8.4g [%.4g … %.4g, %d rounds] against %s", mark, r.Name, r.Value, r.Unit, sign, r.Bound, r.Low, r.High, r.Rounds, r.Against)
	if r.Detail != "" {
		line += "\n      " + strings.ReplaceAll(r.Detail, "\n", "\n      ")
	}
	return line
}

// Read reads the rows of a file.
func Read(path string) ([]Row, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rows []Row
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, fmt.Errorf("%s holds no benchmark rows (%w); move it away and run again", path, err)
	}
	return rows, nil
}

// Write writes the rows as JSON, replacing rows of the same name in the file.
func Write(path string, rows []Row) error {
	old, err := Read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, r := range rows {
		i := slices.IndexFunc(old, func(o Row) bool { return o.Name == r.Name })
		if i >= 0 {
			old[i] = r
		} else {
			old = append(old, r)
		}
	}
	b, err := json.MarshalIndent(old, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// Table writes all rows as Markdown.
func Table(w io.Writer, rows []Row) error {
	if _, err := fmt.Fprintln(w, "| row | value | bound | spread | against | ok |\n|---|---|---|---|---|---|"); err != nil {
		return err
	}
	for _, r := range rows {
		sign, ok := "≥", "yes"
		if r.Better == Lower {
			sign = "≤"
		}
		if !r.OK {
			ok = "**no**"
			if r.BoundBy != "" {
				ok = "bound by " + r.BoundBy
			}
		}
		if r.Error != "" {
			ok = "**error**: " + r.Error
		}
		if _, err := fmt.Fprintf(w, "| `%s` | %.4g %s | %s %.4g | %.4g … %.4g | %s | %s |\n", r.Name, r.Value, r.Unit, sign, r.Bound, r.Low, r.High, r.Against, ok); err != nil {
			return err
		}
	}
	return nil
}
