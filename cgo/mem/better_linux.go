package mem

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Where the kernel tells about memory.
const (
	onlineNodes = "/sys/devices/system/node/online"
	hugePages   = "/sys/kernel/mm/hugepages/hugepages-2048kB"
	thpShared   = "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

	hugeBytes = 2 << 20
)

// createHuge makes the map of reserved huge pages, if they suffice.
func (m *Map) createHuge(name string, size int64) {
	free := count(filepath.Join(hugePages, "free_hugepages"))
	if free == 0 {
		return // as on most hosts: transparent ones are next
	}
	if size%hugeBytes != 0 {
		m.note("%s of memory are no whole number of reserved huge pages of 2 MiB", human(size))
		return
	}
	if need := size / hugeBytes; free < need {
		m.note("%d huge pages of 2 MiB are free, %d were needed: raise vm.nr_hugepages", free, need)
		return
	}
	if err := m.create(name, size, unix.MFD_HUGETLB|unix.MFD_HUGE_2MB); err != nil {
		m.note("reserved huge pages were not to be had (%v)", err)
	}
}

// adviseHuge asks for transparent huge pages.
func (m *Map) adviseHuge() {
	if mode := chosen(thpShared); mode == "never" || mode == "deny" {
		m.note("transparent huge pages of shared memory are off: write advise into %s", thpShared)
		return
	}
	if err := unix.Madvise(m.bytes, unix.MADV_HUGEPAGE); err != nil {
		m.note("no transparent huge pages (%v)", err)
	}
}

// preferNear takes memory near the processor that uses it.
func (m *Map) preferNear(nodes int) {
	if nodes < 2 {
		return
	}
	if err := preferLocal(m.bytes); err != nil {
		m.note("the memory may lie on a far NUMA node (%v)", err)
	}
}

// lock locks all of the map, else its beginning as far as the limit goes.
func (m *Map) lock() {
	whole := lockTouched(m.bytes)
	if whole == nil {
		return
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		m.note("memory is not locked (%v)", whole)
		return
	}
	part := int64(min(limit.Cur, uint64(len(m.bytes))))
	part -= part % int64(os.Getpagesize())
	if part > 0 && lockTouched(m.bytes[:part]) == nil {
		m.note("%s of memory are locked (RLIMIT_MEMLOCK), %s were asked for: raise LimitMEMLOCK in the unit",
			human(part), human(int64(len(m.bytes))))
		return
	}
	m.note("memory is not locked (%v): %s may be locked (RLIMIT_MEMLOCK), %s were asked for: raise LimitMEMLOCK in the unit",
		whole, human(part), human(int64(len(m.bytes))))
}

// nodes counts the NUMA nodes of a list like "0-1,4"; 1 if it can't be read.
func nodes(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 1
	}
	n := 0
	for part := range strings.SplitSeq(string(bytes.TrimSpace(text)), ",") {
		first, last, span := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		b := a
		if err == nil && span {
			b, err = strconv.Atoi(last)
		}
		if err != nil || b < a {
			return 1
		}
		n += b - a + 1
	}
	return n
}

// count is the number in a file, 0 if there is none.
func count(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n
}

// chosen is the word in brackets of a file of choices.
func chosen(file string) string {
	text, _ := os.ReadFile(file)
	_, rest, _ := strings.Cut(string(text), "[")
	word, _, _ := strings.Cut(rest, "]")
	return word
}

// human is a number of bytes as people say it.
func human(n int64) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if size := int64(1) << (10 * (4 - i)); n >= size {
			return strconv.FormatFloat(math.Floor(float64(n)/float64(size)*10)/10, 'f', -1, 64) + " " + unit
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
