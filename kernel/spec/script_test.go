package spec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the stories in testdata:
//
//	config   reads a configuration, prints it back and reads that again
//	block    the same, printing only the named block
//	node     one Node Spec
//	device   one Resource Spec
//	not-yet  reads, then refuses what is not built
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "config", "block":
				c, err := Parse([]byte(d.Input))
				if err != nil {
					return err.Error() + "\n"
				}
				text := c.String()
				again, err := Parse([]byte(text))
				if err != nil {
					t.Fatalf("what was printed is not read: %v\n%s", err, text)
				}
				sameConfig(t, c, again)
				if d.Cmd == "block" {
					return blockOf(text, d.CmdArgs[0].Key)
				}
				return text
			case "node":
				s, err := ParseNode([]byte(d.Input))
				if err != nil {
					return err.Error() + "\n"
				}
				text := FormatNode(s)
				if again, err := ParseNode([]byte(text)); err != nil || again != s {
					t.Fatalf("read back as %+v, %v\n%s", again, err, text)
				}
				return text
			case "device":
				s, err := ParseDevice([]byte(d.Input))
				if err != nil {
					return err.Error() + "\n"
				}
				text := FormatDevice(s)
				if again, err := ParseDevice([]byte(text)); err != nil || !reflect.DeepEqual(again, s) {
					t.Fatalf("read back as %+v, %v\n%s", again, err, text)
				}
				return text
			case "not-yet":
				c, err := Parse([]byte(d.Input))
				if err != nil {
					t.Fatalf("%s: %v", d.Pos, err)
				}
				if err := c.NotYet(); err != nil {
					return err.Error() + "\n"
				}
				return "takes effect\n"
			}
			t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

func sameConfig(t *testing.T, a, b Config) {
	t.Helper()
	a.Given, b.Given = nil, nil
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("round trip changed the configuration:\n%+v\n%+v", a, b)
	}
}

// blockOf cuts one top-level block out of a printed configuration.
func blockOf(text, key string) string {
	var out strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") {
			inside = strings.HasPrefix(line, key+":")
		}
		if inside {
			out.WriteString(line)
		}
	}
	if out.Len() == 0 {
		return fmt.Sprintf("%s is not printed\n", key)
	}
	return out.String()
}
