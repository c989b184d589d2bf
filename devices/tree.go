package devices

import (
	"bufio"
	"bytes"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// tree reads small files of a root directory. What is not there is empty.
type tree struct{ root fs.FS }

func (t tree) text(name string) string {
	f, err := t.root.Open(strings.TrimPrefix(name, "/"))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, fileBytes))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number reads a file that holds one number; ok is false for anything else,
// "max" included.
func (t tree) number(name string) (n int64, ok bool) {
	n, err := strconv.ParseInt(t.text(name), 10, 64)
	return n, err == nil
}

// fields calls each with the key and the value of every line of a file.
func (t tree) fields(name, separator string, each func(key, value string)) {
	lines := bufio.NewScanner(bytes.NewReader([]byte(t.text(name))))
	lines.Buffer(nil, fileBytes)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), separator); ok {
			each(strings.TrimSpace(key), strings.TrimSpace(value))
		}
	}
}

// list is the names in a directory.
func (t tree) list(dir string) []string {
	entries, err := fs.ReadDir(t.root, strings.TrimPrefix(dir, "/"))
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// countList counts the numbers of a list such as "0-3,8"; ok is false if it is
// none.
func countList(s string) (n int, ok bool) {
	for part := range strings.SplitSeq(s, ",") {
		from, to, span := strings.Cut(strings.TrimSpace(part), "-")
		if !span {
			to = from
		}
		a, err := strconv.ParseUint(from, 10, 31)
		b, err2 := strconv.ParseUint(to, 10, 31)
		if err != nil || err2 != nil || b < a {
			return 0, false
		}
		n += int(b-a) + 1
	}
	return n, true
}

// group is the directory of a control group and of those above it, from the
// process's own up to the one where the hierarchy is mounted.
type group []string

// groups finds the process's control group per controller; the unified
// hierarchy (version 2) is "".
func (t tree) groups() map[string]group {
	paths := map[string]string{}
	t.fields("proc/self/cgroup", ":", func(_, rest string) {
		controllers, dir, _ := strings.Cut(rest, ":")
		for c := range strings.SplitSeq(controllers, ",") {
			paths[strings.TrimPrefix(c, "name=")] = dir
		}
	})
	out := map[string]group{}
	for line := range strings.Lines(t.text("proc/self/mountinfo")) {
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		names := []string{""}
		switch g[0] {
		case "cgroup2":
		case "cgroup":
			names = strings.Split(g[2], ",")
		default:
			continue
		}
		for _, c := range names {
			if dir, ok := paths[c]; ok {
				out[c] = climb(f[4], f[3], dir)
			}
		}
	}
	return out
}

// climb lists the directories from a group's own up to its mount point. root
// is the part of the hierarchy that is mounted; a group outside it (seen from
// inside a container) is taken for the mounted one itself.
func climb(mount, root, dir string) group {
	rest, inside := strings.CutPrefix(dir, strings.TrimSuffix(root, "/"))
	if !inside || strings.Contains(dir, "..") {
		rest = "/"
	}
	var g group
	for p := path.Join(mount, rest); ; p = path.Dir(p) {
		g = append(g, p)
		if p == path.Clean(mount) || p == "/" || p == "." {
			return g
		}
	}
}
