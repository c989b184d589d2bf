package devices

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Memory is the main memory, in bytes.
type Memory struct {
	Machine   int64 // what the machine has
	Total     int64 // what this process may use of it
	Available int64 // what it can take now, caches that Linux would drop included
	Limited   bool  // Total is a control group's limit
	Lockable  int64 // RLIMIT_MEMLOCK; math.MaxInt64 if there is none

	HugePages    int64 // reserved, a number
	HugeFree     int64
	HugePageSize int64
	Transparent  string // "always", "madvise", "never", or "unknown"
}

func (t tree) memory(groups map[string]group) Memory {
	m := Memory{Transparent: "unknown", Lockable: t.lockable()}
	t.fields("proc/meminfo", ":", func(key, value string) {
		number, unit, _ := strings.Cut(value, " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return
		}
		if unit == "kB" {
			n <<= 10
		}
		switch key {
		case "MemTotal":
			m.Machine = n
		case "MemAvailable":
			m.Available = n
		case "HugePages_Total":
			m.HugePages = n
		case "HugePages_Free":
			m.HugeFree = n
		case "Hugepagesize":
			m.HugePageSize = n
		}
	})
	m.Total = m.Machine
	for _, v := range [...]struct{ controller, limit, usage, inactive string }{
		{"", "memory.max", "memory.current", "inactive_file"},
		{"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
	} {
		for _, dir := range groups[v.controller] {
			limit, ok := t.number(path.Join(dir, v.limit))
			if !ok || limit >= unlimited {
				continue
			}
			if limit < m.Total {
				m.Total, m.Limited = limit, true
			}
			// File pages that nobody uses are given back under pressure.
			used, _ := t.number(path.Join(dir, v.usage))
			t.fields(path.Join(dir, "memory.stat"), " ", func(key, value string) {
				if n, err := strconv.ParseInt(value, 10, 64); err == nil && key == v.inactive {
					used -= n
				}
			})
			m.Available = min(m.Available, max(limit-max(used, 0), 0))
		}
	}
	text := t.text("sys/kernel/mm/transparent_hugepage/enabled")
	if _, rest, ok := strings.Cut(text, "["); ok {
		m.Transparent, _, _ = strings.Cut(rest, "]")
	}
	return m
}

// lockable reads the soft limit of locked memory.
func (t tree) lockable() int64 {
	const none = 1<<63 - 1
	limit := int64(none)
	for line := range strings.Lines(t.text("proc/self/limits")) {
		if rest, ok := strings.CutPrefix(line, "Max locked memory"); ok {
			if f := strings.Fields(rest); len(f) > 0 && f[0] != "unlimited" {
				limit, _ = strconv.ParseInt(f[0], 10, 64)
			}
		}
	}
	return limit
}

func (t tree) numa() []NUMANode {
	var list []NUMANode
	for id := range maxNodes {
		dir := fmt.Sprintf("sys/devices/system/node/node%d", id)
		n, ok := countList(t.text(dir + "/cpulist"))
		if !ok {
			continue
		}
		node := NUMANode{ID: id, CPUs: n}
		t.fields(dir+"/meminfo", ":", func(key, value string) {
			if strings.HasSuffix(key, "MemTotal") {
				kib, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
				node.Memory = kib << 10
			}
		})
		list = append(list, node)
	}
	return list
}
