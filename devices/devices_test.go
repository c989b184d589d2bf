package devices_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cockroachdb/datadriven"

	"ieg/devices"
	"ieg/devices/devicestest"
)

// TestMachines prints what is found on each machine of devicestest.
func TestMachines(t *testing.T) {
	datadriven.RunTest(t, "testdata/machines", func(t *testing.T, d *datadriven.TestData) string {
		var name string
		d.ScanArgs(t, "name", &name)
		m := devices.Probe(devicestest.Machine(name))
		var b strings.Builder
		switch d.Cmd {
		case "find":
			for _, f := range m.Findings {
				mark := "ok"
				if !f.OK {
					mark = "--"
				}
				fmt.Fprintf(&b, "%s %s: %s\n", mark, f.What, f.Detail)
				if f.Remedy != "" {
					fmt.Fprintf(&b, "   → %s\n", f.Remedy)
				}
			}
		case "devices":
			for _, dev := range m.Devices(devices.Speed{FLOPs: 1e11, Ops: 4e11, Bandwidth: 5e10}) {
				s := dev.Spec
				fmt.Fprintf(&b, "%s %s %s %s %s: fp16 %.4g int8 %.4g %v, %d bytes (%d free) at %.4g B/s, %s %.3g B/s, %q %q, used %.3f\n",
					s.ID, s.Type, s.Vendor, s.Model, s.Series, s.Compute.FP16, s.Compute.INT8, s.Compute.Precisions,
					s.Memory.VRAM, dev.Free, s.Memory.Bandwidth, s.Interconnect.Type, s.Interconnect.Bandwidth,
					s.Topology.Host, s.Topology.NVLinkDomain, s.Utilization.Memory)
			}
		case "cpu":
			c := m.CPU
			fmt.Fprintf(&b, "online %d, physical %d, allowed %d, quota %g, granted %d\n", c.Online, c.Physical, c.Allowed, c.Quota, c.Granted)
			for _, n := range m.NUMA {
				fmt.Fprintf(&b, "node %d: %d processors, %d bytes\n", n.ID, n.CPUs, n.Memory)
			}
		}
		return b.String()
	})
}

// TestAllMachinesAreShown keeps the golden file complete.
func TestAllMachinesAreShown(t *testing.T) {
	for _, name := range devicestest.Names {
		if m := devices.Probe(devicestest.Machine(name)); len(m.Findings) < 5 || m.CPU.Granted < 1 {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// TestNearestLimitWins: of several groups on the way up the least counts.
func TestNearestLimitWins(t *testing.T) {
	s := devicestest.Machine("container-v2")
	files := s.Root.(fstest.MapFS)
	files["sys/fs/cgroup/inner/memory.max"] = &fstest.MapFile{Data: []byte("1000000000\n")}
	files["sys/fs/cgroup/inner/memory.current"] = &fstest.MapFile{Data: []byte("2000000000\n")}
	files["sys/fs/cgroup/inner/cpu.max"] = &fstest.MapFile{Data: []byte("800000 100000\n")}
	m := devices.Probe(s)
	if m.Memory.Total != 1e9 || m.Memory.Available != 0 || m.CPU.Quota != 1.5 {
		t.Errorf("total %d, available %d, quota %g", m.Memory.Total, m.Memory.Available, m.CPU.Quota)
	}
}

// TestHost holds on any Linux machine.
func TestHost(t *testing.T) {
	m := devices.Host()
	if m.CPU.Granted < 1 || m.CPU.Granted > m.CPU.Online || m.Memory.Total <= 0 || m.Memory.Available > m.Memory.Total || m.Host == "" {
		t.Errorf("%+v", m)
	}
	for _, f := range m.Findings {
		if f.What == "" || f.Detail == "" || f.OK != (f.Remedy == "") {
			t.Errorf("finding %+v", f)
		}
	}
}

func TestMeasure(t *testing.T) {
	began := time.Now()
	s := devices.Measure(2)
	took := time.Since(began)
	for name, v := range map[string]float64{"FLOP/s": s.FLOPs, "OP/s": s.Ops, "bytes/s": s.Bandwidth} {
		if v < 1e7 || v > 1e16 || math.IsNaN(v) {
			t.Errorf("%g %s", v, name)
		}
	}
	t.Logf("%.3g FLOP/s, %.3g OP/s, %.3g bytes/s in %v", s.FLOPs, s.Ops, s.Bandwidth, took)
}

// FuzzProbe: whatever a file of /proc or /sys holds, probing ends well.
func FuzzProbe(f *testing.F) {
	f.Add("proc/self/mountinfo", "1 2 0:3 / /sys/fs/cgroup rw - cgroup2 x rw")
	f.Add("proc/self/cgroup", "0::/../..")
	f.Add("sys/devices/system/cpu/online", "0-4294967295")
	f.Add("proc/meminfo", "MemTotal: 9223372036854775807 kB")
	f.Add("sys/fs/cgroup/cpu.max", "1 0")
	f.Fuzz(func(t *testing.T, name, text string) {
		s := devicestest.Machine("container-v2")
		files := s.Root.(fstest.MapFS)
		if _, known := files[name]; !known {
			return
		}
		files[name] = &fstest.MapFile{Data: []byte(text)}
		m := devices.Probe(s)
		if m.CPU.Granted < 1 || m.CPU.Allowed < 0 {
			t.Errorf("%+v", m.CPU)
		}
		m.Devices(devices.Speed{})
	})
}
