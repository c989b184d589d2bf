package ieg_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	unitFile    = "deploy/ieg.service"
	unitProgram = "/usr/local/bin/ieg"
)

// unit reads "Key=value" lines by section.
func unit(t *testing.T) map[string][]string {
	t.Helper()
	f, err := os.Open(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string][]string{}
	section := ""
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line := strings.TrimSpace(sc.Text())
		switch key, value, ok := strings.Cut(line, "="); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]") + "."
		case !ok:
			t.Errorf("line %q", line)
		default:
			out[section+key] = append(out[section+key], value)
		}
	}
	return out
}

func TestUnit(t *testing.T) {
	u := unit(t)
	for key, want := range map[string]string{
		"Service.Type":             "notify",
		"Service.KillMode":         "mixed",
		"Service.Restart":          "on-failure",
		"Service.RuntimeDirectory": "ieg",
		"Service.StateDirectory":   "ieg",
		"Service.CacheDirectory":   "ieg",
		"Service.LimitMEMLOCK":     "infinity",
		"Service.NoNewPrivileges":  "yes",
		"Service.ProtectSystem":    "strict",
		"Service.OOMPolicy":        "continue",
	} {
		if got := strings.Join(u[key], " "); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if strings.Join(u["Service.WatchdogSec"], "") == "" {
		t.Error("no watchdog")
	}
	_, drain, ok := strings.Cut(strings.Join(u["Service.ExecStart"], ""), "--drain-timeout ")
	if !ok {
		t.Fatal("ExecStart has no --drain-timeout")
	}
	drainSpan, err := time.ParseDuration(drain)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := time.ParseDuration(strings.Join(u["Service.TimeoutStopSec"], "") + "s")
	if err != nil {
		t.Fatal(err)
	}
	if stop < drainSpan+10*time.Second {
		t.Errorf("killed after %v, but draining may take %v", stop, drainSpan)
	}
}

// systemd's own judgement, where it is installed.
func TestUnitVerifies(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable() // it only asks that the program exists
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "ieg.service")
	if err := os.WriteFile(copied, []byte(strings.ReplaceAll(string(text), unitProgram, self)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", copied).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err := exec.Command(analyze, "security", "--offline=yes", "--threshold=25", copied).CombinedOutput()
	if err != nil {
		t.Errorf("exposure above 2.5: %v\n%s", err, out)
	}
}
