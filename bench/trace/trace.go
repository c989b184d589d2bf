package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Record is one request of a trace.
type Record struct {
	At     time.Duration // since the first
	Input  int           // tokens of the prompt
	Output int           // tokens generated
	// Hashes name the blocks of HashTokens tokens of the prompt; may be empty.
	Hashes []int64
}

// line is what is read of a line.
type line struct {
	Timestamp  json.RawMessage `json:"timestamp"`
	Input      *int            `json:"input_length"`
	Context    *int            `json:"ContextTokens"`
	Prompt     *int            `json:"prompt_tokens"`
	Output     *int            `json:"output_length"`
	Generated  *int            `json:"GeneratedTokens"`
	Completion *int            `json:"completion_tokens"`
	Hashes     []int64         `json:"hash_ids"`
}

// ErrLine: a line is not a request. It tells the number and why.
var ErrLine = errors.New("not a line of a trace")

// Read reads all records, in the order of their times.
func Read(r io.Reader) ([]Record, error) {
	in := bufio.NewReader(r)
	if head, _ := in.Peek(2); len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("trace: %w", err)
		}
		defer z.Close()
		in = bufio.NewReader(z)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, LineMax)
	var out []Record
	for n := 1; lines.Scan(); n++ {
		b := bytes.TrimSpace(lines.Bytes())
		if len(b) == 0 {
			continue
		}
		if len(out) == RecordsMax {
			return nil, fmt.Errorf("%w: line %d: more than %d requests", ErrLine, n, RecordsMax)
		}
		rec, err := parse(b)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrLine, n, err)
		}
		out = append(out, rec)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("trace: after %d requests: %w", len(out), err)
	}
	slices.SortStableFunc(out, func(a, b Record) int { return int(min(max(a.At-b.At, -1), 1)) })
	if len(out) > 0 {
		first := out[0].At
		for i := range out {
			out[i].At -= first
		}
	}
	return out, nil
}

func parse(b []byte) (Record, error) {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return Record{}, err
	}
	in, out := first(l.Input, l.Context, l.Prompt), first(l.Output, l.Generated, l.Completion)
	if in < 1 || in > TokensMax || out < 0 || out > TokensMax {
		return Record{}, fmt.Errorf("a prompt of %d and an output of %d tokens; 1 to %d and 0 to %[3]d are possible", in, out, TokensMax)
	}
	at, err := when(l.Timestamp)
	if err != nil {
		return Record{}, err
	}
	return Record{At: at, Input: in, Output: out, Hashes: l.Hashes}, nil
}

// first is the first number that is there, -1 if none is.
func first(v ...*int) int {
	for _, p := range v {
		if p != nil {
			return *p
		}
	}
	return -1
}

// epoch is where dates are counted from: any fixed day does.
var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// when reads a time: milliseconds, or a date.
func when(b json.RawMessage) (time.Duration, error) {
	var ms float64
	if err := json.Unmarshal(b, &ms); err == nil {
		if ms < -1e12 || ms > 1e12 {
			return 0, fmt.Errorf("timestamp %g: milliseconds since the start are expected", ms)
		}
		return time.Duration(ms * 1e6), nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return 0, errors.New("timestamp is neither milliseconds nor a date")
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, s); err == nil {
			d := t.Sub(epoch)
			if d < -100*365*24*time.Hour || d > 100*365*24*time.Hour {
				break
			}
			return d, nil
		}
	}
	return 0, fmt.Errorf("timestamp %q is no date", s)
}
