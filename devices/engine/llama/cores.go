package llama

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// grantedCores is the number of cores this process may use: the scheduler's
// affinity (runtime.NumCPU), bounded by the cgroup's quota.
func grantedCores() int {
	n := runtime.NumCPU()
	if q := cgroupQuota("/sys/fs/cgroup", selfCgroup()); q > 0 && q < float64(n) {
		n = int(q)
	}
	return max(n, 1)
}

// selfCgroup is the path of this process's cgroup (version 2), "/" if unknown.
func selfCgroup() string {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "/"
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return rest
		}
	}
	return "/"
}

// upwards calls f with the folder of the cgroup and of each above it.
func upwards(root, cgroup string, f func(dir string)) {
	for p := filepath.Clean("/" + cgroup); ; p = filepath.Dir(p) {
		f(filepath.Join(root, p))
		if p == "/" {
			return
		}
	}
}

// cgroupQuota is the smallest CPU quota in cores on the way to the root; 0 if
// there is none.
func cgroupQuota(root, cgroup string) float64 {
	least := 0.0
	upwards(root, cgroup, func(dir string) {
		b, err := os.ReadFile(filepath.Join(dir, "cpu.max"))
		if err != nil {
			return
		}
		f := strings.Fields(string(b))
		if len(f) != 2 || f[0] == "max" {
			return
		}
		quota, err1 := strconv.ParseFloat(f[0], 64)
		period, err2 := strconv.ParseFloat(f[1], 64)
		if err1 != nil || err2 != nil || period <= 0 {
			return
		}
		if q := quota / period; least == 0 || q < least {
			least = q
		}
	})
	return least
}

// freeMemory is what the host can still give, in bytes: MemAvailable, bounded
// by the room in the cgroups; 0 if unknown.
func freeMemory() int64 {
	free := memAvailable("/proc/meminfo")
	upwards("/sys/fs/cgroup", selfCgroup(), func(dir string) {
		limit, ok1 := number(filepath.Join(dir, "memory.max"))
		used, ok2 := number(filepath.Join(dir, "memory.current"))
		if ok1 && ok2 && (free == 0 || limit-used < free) {
			free = max(limit-used, 1)
		}
	})
	return free
}

func memAvailable(path string) int64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" {
			if kib, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return kib << 10
			}
		}
	}
	return 0
}

// number reads a file that holds one number; "max" is none.
func number(path string) (int64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}
