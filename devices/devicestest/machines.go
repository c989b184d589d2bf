package devicestest

import (
	"errors"
	"fmt"
	"strings"
	"testing/fstest"

	"ieg/cgo/nvml"
	"ieg/devices"
)

const (
	amdFlags   = "fpu sse2 avx avx2 fma f16c avx512f avx512_vnni avx512_bf16"
	intelFlags = "fpu sse2 avx avx2 fma f16c avx512f avx512_vnni avx512_bf16 amx_bf16 amx_int8"
)

// Names lists the machines in the order in which they are shown.
var Names = []string{"vm", "two-socket", "h200-box", "container-v2", "container-v1", "old-laptop", "no-driver", "broken-driver", "empty"}

// Machine returns a machine by name, or panics.
func Machine(name string) devices.Source {
	switch name {
	case "vm":
		return source("vm", root(2, 1, 1, "AuthenticAMD", "AMD EPYC 9654 96-Core Processor", amdFlags, 24<<20, 8<<20))
	case "two-socket":
		return source("big", root(64, 2, 2, "GenuineIntel", "Intel(R) Xeon(R) Platinum 8480+", intelFlags, 512<<20, 1<<63-1))
	case "h200-box":
		return h200Box()
	case "container-v2":
		return containerV2()
	case "container-v1":
		return containerV1()
	case "old-laptop":
		return source("laptop", root(4, 2, 1, "GenuineIntel", "Intel(R) Core(TM) i5-3320M CPU @ 2.60GHz", "fpu sse2 avx", 8<<20, 64<<10))
	case "no-driver":
		s := h200Box()
		s.NVML = noDriver
		return s
	case "broken-driver":
		s := h200Box()
		s.NVML = func() (nvml.Report, error) {
			return nvml.Report{}, errors.New("NVML does not start: Driver/library version mismatch")
		}
		return s
	case "empty":
		return source("empty", fstest.MapFS{})
	}
	panic("no machine " + name)
}

func source(host string, files fstest.MapFS) devices.Source {
	return devices.Source{Root: files, Host: host, NVML: noDriver}
}

func noDriver() (nvml.Report, error) { return nvml.Report{}, nvml.ErrNoLibrary }

func put(files fstest.MapFS, name, text string) {
	files[name] = &fstest.MapFile{Data: []byte(text)}
}

// root makes the files of a machine of so many processors (threads of them a
// core), NUMA nodes, KiB of memory, and bytes that may be locked.
func root(processors, threads, nodes int, vendor, model, flags string, memKiB int, locked uint64) fstest.MapFS {
	files := fstest.MapFS{}
	var info strings.Builder
	perSocket := processors / nodes
	for i := range processors {
		fmt.Fprintf(&info, "processor\t: %d\nvendor_id\t: %s\nmodel name\t: %s\nphysical id\t: %d\ncore id\t\t: %d\nflags\t\t: %s\n\n",
			i, vendor, model, i/perSocket, i%perSocket/threads, flags)
	}
	put(files, "proc/cpuinfo", info.String())
	put(files, "proc/meminfo", fmt.Sprintf("MemTotal:       %d kB\nMemFree:        %d kB\nMemAvailable:   %d kB\nHugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n",
		memKiB, memKiB/2, memKiB/10*9))
	put(files, "proc/self/status", fmt.Sprintf("Name:\tieg\nCpus_allowed:\tffff\nCpus_allowed_list:\t0-%d\n", processors-1))
	limit := fmt.Sprint(locked)
	if locked > 1<<62 {
		limit = "unlimited"
	}
	put(files, "proc/self/limits", "Limit                     Soft Limit           Hard Limit           Units\n"+
		"Max locked memory         "+limit+"              "+limit+"              bytes\n")
	put(files, "proc/self/cgroup", "0::/system.slice/ieg.service\n")
	put(files, "proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw\n")
	put(files, "sys/fs/cgroup/system.slice/ieg.service/cpu.max", "max 100000\n")
	put(files, "sys/fs/cgroup/system.slice/ieg.service/memory.max", "max\n")
	put(files, "sys/devices/system/cpu/online", fmt.Sprintf("0-%d\n", processors-1))
	put(files, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
	for n := range nodes {
		dir := fmt.Sprintf("sys/devices/system/node/node%d/", n)
		put(files, dir+"cpulist", fmt.Sprintf("%d-%d\n", n*perSocket, (n+1)*perSocket-1))
		put(files, dir+"meminfo", fmt.Sprintf("Node %d MemTotal:       %d kB\nNode %d MemFree:        1 kB\n", n, memKiB/nodes, n))
	}
	return files
}

// h200Box is a server with eight GPUs that are linked with each other.
func h200Box() devices.Source {
	s := source("gpu-node-03", root(192, 2, 2, "GenuineIntel", "Intel(R) Xeon(R) Platinum 8592+", intelFlags, 2<<30, 1<<63-1))
	files := s.Root.(fstest.MapFS)
	put(files, "proc/meminfo", "MemTotal:       2147483648 kB\nMemAvailable:   2000000000 kB\nHugePages_Total:    1024\nHugePages_Free:     1000\nHugepagesize:    1048576 kB\n")
	var report nvml.Report
	report.Driver = "570.124.06"
	for i := range 8 {
		dir := fmt.Sprintf("sys/bus/pci/devices/0000:%02x:00.0/", 0x1b+i)
		put(files, dir+"vendor", "0x10de\n")
		put(files, dir+"class", "0x030200\n")
		report.Devices = append(report.Devices, nvml.Device{
			Index: i, Name: "NVIDIA H200", UUID: fmt.Sprintf("GPU-%032d", i), PCI: fmt.Sprintf("00000000:%02X:00.0", 0x1b+i),
			Major: 9, Minor: 0, Cores: 16896, ClockMHz: 1980, MemClockMHz: 3201, BusBits: 6144,
			Memory: 150_754_820_096, Free: 150_754_820_096 - int64(i)<<30, NVLinks: 18, NVLinkVersion: 4,
		})
	}
	put(files, "sys/bus/pci/devices/0000:00:00.0/vendor", "0x8086\n")
	put(files, "sys/bus/pci/devices/0000:00:00.0/class", "0x060000\n")
	s.NVML = func() (nvml.Report, error) { return report, nil }
	return s
}

// containerV2 has 1.5 cores of time and 2 GiB on a machine of 64 processors;
// the limits are those of the group above its own, seen from inside.
func containerV2() devices.Source {
	s := source("pod-7", root(64, 2, 2, "GenuineIntel", "Intel(R) Xeon(R) Platinum 8480+", intelFlags, 512<<20, 64<<10))
	files := s.Root.(fstest.MapFS)
	put(files, "proc/self/cgroup", "0::/inner\n")
	put(files, "sys/fs/cgroup/cpu.max", "150000 100000\n")
	put(files, "sys/fs/cgroup/memory.max", "2147483648\n")
	put(files, "sys/fs/cgroup/memory.current", "1610612736\n")
	put(files, "sys/fs/cgroup/memory.stat", "anon 536870912\nfile 1073741824\ninactive_file 1073741824\nactive_file 0\n")
	put(files, "sys/fs/cgroup/inner/cpu.max", "max 100000\n")
	put(files, "sys/fs/cgroup/inner/memory.max", "max\n")
	return s
}

// containerV1 has 4 processors by cpuset, 3 cores of time and 8 GiB, in the
// first version's hierarchies, mounted from a part of them.
func containerV1() devices.Source {
	s := source("old-pod", root(16, 2, 1, "AuthenticAMD", "AMD EPYC 7302 16-Core Processor", "fpu sse2 avx avx2 fma f16c", 64<<20, 8<<20))
	files := s.Root.(fstest.MapFS)
	put(files, "proc/self/cgroup", "12:cpu,cpuacct:/docker/abc\n7:memory:/docker/abc\n5:cpuset:/docker/abc\n1:name=systemd:/docker/abc\n0::/system.slice\n")
	put(files, "proc/self/mountinfo",
		"40 30 0:31 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"+
			"41 30 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"+
			"42 30 0:33 /docker/abc /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n"+
			"not a line of a mount table\n")
	put(files, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n")
	put(files, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
	put(files, "sys/fs/cgroup/memory/memory.limit_in_bytes", "8589934592\n")
	put(files, "sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n")
	put(files, "sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-2,8\n")
	return s
}
