package grammar

import (
	"math/rand/v2"
	"regexp"
	"testing"
)

// TestRegexAgrees compares Regex with Go's own matcher on walks and mutations.
func TestRegexAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for _, pattern := range []string{
		`a`, `ab*c+d?`, `(foo|bar){1,3}`, `[a-c]{2}[^x]`, `\d{3}-\d{4}`, `^\w+@\w+\.(com|org)$`, `(?i)hello`,
		`(a|b)*abb`, `x{0,2}y{2,}`, `[\[\]\\^-]+`, `é+|世界`, `(^a|b$)`, `"q\\"`, `\x{1F600}?z`, `[[:alpha:]]+`, `(?:a(?:b(?:c)?)?)?d`, `.`,
	} {
		text, err := Regex(pattern)
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		g, err := parseGBNF(text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", pattern, err, text)
		}
		whole := regexp.MustCompile(`^(?:` + pattern + `)$`)
		hits := 0
		for range 400 {
			walk := g.walk(r)
			if !whole.MatchString(walk) {
				t.Fatalf("%s: the grammar wrote %q", pattern, walk)
			}
			changed := mutate(r, walk)
			if pattern == `.` && changed == "\r" {
				continue
			}
			if got, want := g.accepts(changed), whole.MatchString(changed); got != want {
				t.Fatalf("%s: accepts(%q) = %v, regexp says %v\n%s", pattern, changed, got, want, text)
			} else if want {
				hits++
			}
		}
		if hits == 400 {
			t.Errorf("%s: no mutation was rejected", pattern)
		}
	}
}
