package report

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMeasureJudgesTheMedian(t *testing.T) {
	r := Row{Better: Higher, Bound: 0.95}
	r.Measure([]float64{0.90, 0.97, 0.99})
	if !r.OK || r.Value != 0.97 || r.Low != 0.90 || r.High != 0.99 || r.Rounds != 3 {
		t.Errorf("%+v", r)
	}
	r = Row{Better: Lower, Bound: 1.2}
	r.Measure([]float64{1.3, 1.3})
	if r.OK {
		t.Errorf("1.3 holds a bound of 1.2: %+v", r)
	}
	r.Measure([]float64{math.NaN()})
	if r.OK {
		t.Error("no number holds a bound")
	}
	r = Row{}
	if r.Measure(nil); r.Error == "" {
		t.Error("no rounds are no error")
	}
}

func TestPercentileIsNearestRank(t *testing.T) {
	v := []float64{5, 1, 4, 2, 3}
	for p, want := range map[float64]float64{0: 1, 20: 1, 50: 3, 99: 5, 100: 5} {
		if got := Percentile(v, p); got != want {
			t.Errorf("p%g is %g, not %g", p, got, want)
		}
	}
}

func TestWriteReplacesRowsByName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "rows.json")
	for _, rows := range [][]Row{{{Name: "a", Value: 1}, {Name: "b", Value: 2}}, {{Name: "a", Value: 3}}} {
		if err := Write(path, rows); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := Read(path)
	if err != nil || len(rows) != 2 || rows[0].Value != 3 || rows[1].Value != 2 {
		t.Fatalf("%+v, %v", rows, err)
	}
	var b strings.Builder
	if err := Table(&b, rows); err != nil || strings.Count(b.String(), "\n") != 4 {
		t.Errorf("%v\n%s", err, b.String())
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, rows); err == nil {
		t.Error("a file that holds something else is overwritten")
	}
}
