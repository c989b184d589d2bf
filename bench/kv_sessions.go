package bench

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// session is a recorded conversation of an agent: one prompt a turn, of which
// blocks are named; equal names at equal places are equal text.
type session struct {
	Block int           `json:"block"` // tokens of a named block
	Turns []sessionTurn `json:"turns"`
}

// sessionTurn is one request; the names of its full blocks are runs: the first
// name and how many follow one another.
type sessionTurn struct {
	In    int      `json:"in"`  // tokens of the prompt
	Out   int      `json:"out"` // tokens of the answer
	Names [][2]int `json:"h"`
	Think float64  `json:"think"` // seconds before it, after the answer before
}

// check refuses what no session is.
func (s *session) check() error {
	if s.Block < 1 || s.Block > sessionTokensMax {
		return fmt.Errorf("blocks of %d tokens", s.Block)
	}
	for i, t := range s.Turns {
		blocks := 0
		for _, run := range t.Names {
			if run[1] < 0 || run[1] > sessionTokensMax {
				return fmt.Errorf("turn %d: a run of %d blocks", i, run[1])
			}
			blocks += run[1]
		}
		if t.In < 1 || t.In > sessionTokensMax || t.Out < 0 || !(t.Think >= 0 && t.Think < 1e9) || blocks*s.Block > t.In {
			return fmt.Errorf("turn %d: %d tokens, %d answered after %g s, %d blocks named", i, t.In, t.Out, t.Think, blocks)
		}
	}
	return nil
}

// readSessions reads the first n sessions that take at least so many turns,
// of prompts of at most inMax tokens, from JSON lines.
func readSessions(r io.Reader, n, turns, inMax int) ([]session, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, sessionLineMax)
	var out []session
	for at := 1; len(out) < n && lines.Scan(); at++ {
		var s session
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("session %d: %w", at, err)
		}
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("session %d: %w", at, err)
		}
		if len(s.Turns) < turns {
			continue
		}
		s.Turns = s.Turns[:turns]
		most := 0
		for _, t := range s.Turns {
			most = max(most, t.In)
		}
		if most <= inMax {
			out = append(out, s)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(out) < n {
		return nil, fmt.Errorf("%d sessions of %d turns are there, %d are needed", len(out), turns, n)
	}
	return out, nil
}

// openSessions reads them from a gzipped file.
func openSessions(path string, n, turns, inMax int) ([]session, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	list, err := readSessions(z, n, turns, inMax)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// scaled is a session made shorter: its prompts as tokens.
type scaled struct {
	prompts [][]int
	outputs []int
	thinks  []time.Duration
	common  []int // tokens that a prompt begins with as an earlier one did
}

// scale divides lengths and think times. Token i of a short prompt stands for
// token i × lengths of the long one, and depends on the name of its block and
// its place in it; what is in no named block is new text.
func (s *session) scale(seed uint64, lengths, times int) scaled {
	var out scaled
	for turn, t := range s.Turns {
		names := make([]int, 0, t.In/s.Block)
		for _, run := range t.Names {
			for k := range run[1] {
				names = append(names, run[0]+k)
			}
		}
		prompt := make([]int, max(t.In/lengths, 2))
		for i := range prompt {
			at := i * lengths
			x := seed<<48 + uint64(at%s.Block)
			if b := at / s.Block; b < len(names) {
				x += uint64(names[b]) << 16
			} else {
				x += 1<<63 + uint64(turn)<<40 + uint64(at)<<16
			}
			prompt[i] = 1000 + int(mix(x+1)%20000)
		}
		most := 0
		for _, p := range out.prompts {
			most = max(most, commonStart(p, prompt))
		}
		out.common = append(out.common, min(most, len(prompt)-1))
		out.prompts = append(out.prompts, prompt)
		out.outputs = append(out.outputs, max(t.Out/lengths, 1))
		out.thinks = append(out.thinks, time.Duration(t.Think/float64(times)*float64(time.Second)))
	}
	return out
}

func commonStart(a, b []int) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
