package ieg_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script runs a script with an empty cache and, of the tools that it may ask
// for, those in tools only: name → shell code.
func script(t *testing.T, tools map[string]string, args ...string) (cache, output string, err error) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	bin, cache := t.TempDir(), t.TempDir()
	// What every Debian has, and the scripts use.
	for _, name := range []string{"awk", "basename", "bash", "cat", "chmod", "cp", "cut", "date", "dirname", "flock",
		"grep", "gzip", "head", "id", "ln", "ls", "mkdir", "mktemp", "mv", "rm", "sha256sum", "sleep", "sort", "stat", "tail", "tar", "tee", "uname"} {
		if p, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(p, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, code := range tools {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!"+bash+"\n"+code+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(bash, args...)
	cmd.Env = []string{"PATH=" + bin, "HOME=" + cache, "XDG_CACHE_HOME=" + cache}
	out, err := cmd.CombinedOutput()
	return filepath.Join(cache, "ieg"), string(out), err
}

func TestMissingToolsInOneLine(t *testing.T) {
	_, out, err := script(t, nil, "scripts/need.sh", "run")
	if err == nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("%v: want one line:\n%s", err, out)
	}
	for _, tool := range []string{"go 1.26", "npm", "python3", "pip"} {
		if !strings.Contains(out, tool) {
			t.Errorf("%q does not name %s", out, tool)
		}
	}
	all := map[string]string{"go": "", "npm": "", "pip": "", "python3": "exit 1"}
	if _, out, err := script(t, all, "scripts/need.sh", "run"); err != nil {
		t.Errorf("nothing is missing, but: %v %s", err, out)
	}
}

func TestFetchRefusesWrongBytes(t *testing.T) {
	cache, out, err := script(t, map[string]string{"npm": "echo other bytes >x.tgz; echo x.tgz"}, "scripts/engine.sh")
	if err == nil || !strings.Contains(out, "sha256 is") || !strings.Contains(out, "nothing was kept") {
		t.Errorf("%v:\n%s", err, out)
	}
	for _, folder := range []string{"downloads", "lib"} {
		if left, _ := filepath.Glob(filepath.Join(cache, folder, "*")); len(left) != 0 {
			t.Errorf("kept %q", left)
		}
	}
}

func TestFetchOffLine(t *testing.T) {
	for name, c := range map[string]struct {
		tools map[string]string
		args  []string
	}{
		"npm": {map[string]string{"npm": "echo npm error network EAI_AGAIN >&2; exit 1"}, []string{"scripts/engine.sh"}},
		"pip": {map[string]string{"pip": "[[ $1 == --version ]] || { echo ERROR: no route >&2; exit 1; }", "python3": "exit 1"}, []string{"scripts/models.sh", "chat"}},
	} {
		_, out, err := script(t, c.tools, c.args...)
		last := out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]
		if err == nil || !strings.Contains(last, "on line") || !strings.Contains(last, name+" could not fetch") {
			t.Errorf("%s: %v:\n%s", name, err, out)
		}
	}
}

func TestScriptsAreExecutable(t *testing.T) {
	files, err := filepath.Glob("scripts/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, ".ci/run") {
		st, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if run := strings.HasPrefix(string(text), "#!"); run != (st.Mode()&0o100 != 0) {
			t.Errorf("%s: begins with #!: %v, mode %v", f, run, st.Mode())
		}
	}
}
