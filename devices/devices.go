package devices

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"ieg"
	"ieg/cgo/nvml"
)

// Source is where a machine is read from.
type Source struct {
	// Root is the root directory: proc/… and sys/… are read from it.
	Root fs.FS
	// Host is the host's name.
	Host string
	// NVML lists the NVIDIA devices; nvml.ErrNoLibrary means no driver.
	NVML func() (nvml.Report, error)
}

// Live is this machine.
func Live() Source {
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	return Source{Root: os.DirFS("/"), Host: name, NVML: nvml.List}
}

// Machine is what was found.
type Machine struct {
	Host     string
	CPU      CPU
	Memory   Memory
	NUMA     []NUMANode
	Driver   string        // version of the NVIDIA driver, "" without one
	GPUs     []nvml.Device // in the driver's order
	Findings []Finding
}

// NUMANode is a part of the machine with its own memory.
type NUMANode struct {
	ID     int
	CPUs   int
	Memory int64 // bytes
}

// Finding is one line of "ieg doctor".
type Finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	// Remedy says what to do; "" if there is nothing to do.
	Remedy string `json:"remedy,omitempty"`
}

// Device is a device with the memory that is free on it now.
type Device struct {
	Spec ieg.ResourceSpec
	Free int64 // bytes
}

// CPUDevice is the id of the CPU as a device; NVIDIA devices are "CUDA0" …,
// as ggml names them.
const CPUDevice = "CPU"

// Host probes this machine.
func Host() *Machine { return Probe(Live()) }

// Probe reads a machine. It takes milliseconds, and does not fail: what can't
// be read is told by the findings.
func Probe(src Source) *Machine {
	t := tree{src.Root}
	m := &Machine{Host: src.Host}
	groups := t.groups()
	m.CPU = t.cpu(groups)
	m.Memory = t.memory(groups)
	m.NUMA = t.numa()
	m.findCPU()
	m.findMemory()
	m.probeGPUs(t, src.NVML)
	return m
}

// Devices lists the devices: the CPU first, then the GPUs. cpu is what Measure
// measured, or the zero value.
func (m *Machine) Devices(cpu Speed) []Device {
	spec := ieg.ResourceSpec{ID: CPUDevice, Type: "CPU", Vendor: m.CPU.Vendor, Model: m.CPU.Model}
	spec.Compute.FP16, spec.Compute.INT8 = cpu.FLOPs, cpu.Ops
	spec.Compute.Precisions = m.CPU.precisions()
	spec.Memory.VRAM, spec.Memory.Bandwidth = m.Memory.Total, cpu.Bandwidth
	spec.Topology.Host = m.Host
	list := []Device{{Spec: spec, Free: m.Memory.Available}}
	for _, g := range m.GPUs {
		list = append(list, Device{Spec: m.gpuSpec(g), Free: g.Free})
	}
	return list
}

func (m *Machine) find(what string, ok bool, remedy, detail string, args ...any) {
	f := Finding{What: what, OK: ok, Detail: fmt.Sprintf(detail, args...)}
	if !ok {
		f.Remedy = remedy
	}
	m.Findings = append(m.Findings, f)
}

func (m *Machine) findCPU() {
	c := &m.CPU
	detail := fmt.Sprintf("%d of %d cores granted, %s", c.Granted, c.Online, c.Model)
	if c.Quota > 0 {
		detail += fmt.Sprintf("; the control group grants %.3g cores of time", c.Quota)
	}
	if c.Allowed < c.Online {
		detail += fmt.Sprintf("; affinity and cpuset allow %d", c.Allowed)
	}
	m.find("cores", c.Granted >= 2, "grant two cores or more: one runs the engine, the other the node", "%s", detail)
	if whole := float64(int(c.Quota)); c.Quota > 0 && c.Quota != whole {
		m.find("cpu quota", false, fmt.Sprintf("make the quota a whole number of cores (%.0f or %.0f): engine threads wait for each other at every layer, and one that is throttled stops all", max(whole, 1), whole+1),
			"%.3g cores of time for %d engine threads", c.Quota, c.Granted)
	}
	wide := c.Has("avx2") || c.Has("asimd")
	m.find("instructions", wide, "use a CPU with AVX2: without it the engine is several times slower", "%s", strings.Join(c.widths(), ", "))
	if len(m.NUMA) > 1 {
		m.find("NUMA", true, "", "%d nodes; engine threads of one model should stay on one", len(m.NUMA))
	}
}

func (m *Machine) findMemory() {
	mem := &m.Memory
	detail := fmt.Sprintf("%s of %s available", size(mem.Available), size(mem.Total))
	if mem.Limited {
		detail += fmt.Sprintf(" (limit of the control group; the machine has %s)", size(mem.Machine))
	}
	m.find("memory", mem.Available >= memoryWanted, "free some memory, or raise the limit of the control group", "%s", detail)
	locked := "unlimited"
	if mem.Lockable < unlimited {
		locked = size(mem.Lockable)
	}
	m.find("locked memory", mem.Lockable >= lockedWanted,
		"set LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited; until then KV in host memory is not pinned",
		"%s may be locked", locked)
	if mem.HugePages > 0 {
		m.find("huge pages", true, "", "%d of %s reserved, %d free", mem.HugePages, size(mem.HugePageSize), mem.HugeFree)
	} else {
		m.find("huge pages", true, "", "none reserved (transparent: %s); none are needed", mem.Transparent)
	}
}

// size prints bytes for people.
func size(n int64) string {
	for i, unit := range [...]string{"TiB", "GiB", "MiB", "KiB"} {
		if one := int64(1) << (40 - 10*i); n >= one {
			return fmt.Sprintf("%.4g %s", float64(n)/float64(one), unit)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
