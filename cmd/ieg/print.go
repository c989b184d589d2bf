package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
)

// printout is the program's output. It keeps the first error, so that what
// prints need not look at each write.
type printout struct {
	to  io.Writer
	err error
}

func (p *printout) Write(b []byte) (int, error) {
	n, err := p.to.Write(b)
	if p.err == nil {
		p.err = err
	}
	return n, err
}

// bare is the writer behind a printout, whose errors then don't count.
func bare(w io.Writer) io.Writer {
	if p, ok := w.(*printout); ok {
		return p.to
	}
	return w
}

// printJSON writes data as JSON for programs.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table prints rows in columns; the first row is the head.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	return t.Flush()
}

// cut shortens a text of many words to one line of at most n signs.
func cut(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return string(r)
}

// isTerminal tells whether people watch w.
func isTerminal(w any) bool {
	if p, ok := w.(*printout); ok {
		w = p.to
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// span prints a time span with three digits that matter.
func span(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f µs", float64(d)/1e3)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", float64(d)/1e6)
	case d < 100*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// size prints bytes with a decimal unit.
func size(n int64) string {
	return scaled(float64(n), "B")
}

// known is scaled, for figures that a device may not tell.
func known(x float64, unit string) string {
	if x == 0 {
		return "unknown " + unit
	}
	return scaled(x, unit)
}

// scaled prints a number with a decimal prefix.
func scaled(x float64, unit string) string {
	if x == 0 {
		return "0 " + unit
	}
	prefixes := []string{"", "k", "M", "G", "T", "P", "E"}
	i := 0
	for x >= 999.5 && i < len(prefixes)-1 {
		x /= 1000
		i++
	}
	switch {
	case i == 0:
		return fmt.Sprintf("%.0f %s", x, unit)
	case x < 9.995:
		return fmt.Sprintf("%.2f %s%s", x, prefixes[i], unit)
	case x < 99.95:
		return fmt.Sprintf("%.1f %s%s", x, prefixes[i], unit)
	}
	return fmt.Sprintf("%.0f %s%s", x, prefixes[i], unit)
}

// bar draws part of whole in cells, in eighths of a cell.
func bar(part, whole float64, cells int) string {
	if whole <= 0 || part <= 0 {
		return ""
	}
	eighths := int(min(part/whole, 1)*float64(cells)*8 + 0.5)
	s := strings.Repeat("█", eighths/8)
	if r := eighths % 8; r > 0 {
		s += string([]rune(" ▏▎▍▌▋▊▉")[r])
	}
	if s == "" {
		s = "▏"
	}
	return s
}

// progress shows how far a job is: a bar on a terminal, nothing elsewhere.
type progress struct {
	w    io.Writer
	what string
	on   bool
	last string
}

func newProgress(w io.Writer, what string) *progress {
	return &progress{w: w, what: what, on: isTerminal(w)}
}

func (p *progress) show(fraction float64) {
	if !p.on {
		return
	}
	line := fmt.Sprintf("%s %-*s %3.0f%%", p.what, BarCells, bar(fraction, 1, BarCells), fraction*100)
	if line != p.last {
		fmt.Fprintf(p.w, "\r\x1b[K%s", line)
		p.last = line
	}
}

func (p *progress) done() {
	if p.on && p.last != "" {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.last = ""
}
