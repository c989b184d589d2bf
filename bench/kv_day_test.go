package bench

import (
	"strings"
	"testing"
	"time"

	"ieg"
	"ieg/bench/load"
)

func TestPictureShowsShares(t *testing.T) {
	var a, b ieg.Status
	a.Totals.PromptTokens, b.Totals.PromptTokens = 100, 700
	a.KV.Counts.Hits = [ieg.NumTiers]int64{10, 0, 0}
	b.KV.Counts.Hits = [ieg.NumTiers]int64{310, 150, 60}
	want := "   600 " + strings.Repeat("#", 30) + strings.Repeat("+", 15) + strings.Repeat("-", 6) + strings.Repeat(".", 9)
	if got := picture(a, b); got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if got := picture(a, a); strings.TrimSpace(got) != "0" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestDayPrintsHitsBesideTheBound(t *testing.T) {
	st := ieg.Status{}
	st.KV.Counts.Hits = [ieg.NumTiers]int64{20, 15, 10}
	st.Totals.PromptTokens = 100
	at := time.Now()
	d := &day{samples: []ieg.Status{st}, traces: []*load.Trace{{Start: at, Tokens: []time.Time{at.Add(time.Second)}}}}
	d.sessions = []scaled{{prompts: [][]int{make([]int, 40), make([]int, 60)}, common: []int{0, 50}}}
	var out strings.Builder
	d.print(&out)
	for _, want := range []string{"prompt tokens         100", "infinite cache         50   50.0 %", "hits                   45", "computed               55", "90.0 % of the infinite"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
