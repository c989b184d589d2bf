package devices

import (
	"errors"
	"fmt"
	"strings"

	"ieg"
	"ieg/cgo/nvml"
)

// nvidiaVendor is NVIDIA's PCI vendor number.
const nvidiaVendor = "0x10de"

// onBus counts NVIDIA's display controllers on the PCI bus, whether or not
// there is a driver for them.
func (t tree) onBus() int {
	n := 0
	for _, name := range t.list("sys/bus/pci/devices") {
		dir := "sys/bus/pci/devices/" + name
		if t.text(dir+"/vendor") == nvidiaVendor && strings.HasPrefix(t.text(dir+"/class"), "0x03") {
			n++
		}
	}
	return n
}

func (m *Machine) probeGPUs(t tree, list func() (nvml.Report, error)) {
	onBus := t.onBus()
	if list == nil {
		list = func() (nvml.Report, error) { return nvml.Report{}, nvml.ErrNoLibrary }
	}
	report, err := list()
	m.Driver, m.GPUs = report.Driver, report.Devices
	const what = "NVIDIA GPUs"
	switch {
	case errors.Is(err, nvml.ErrNoLibrary) && onBus == 0:
		m.find(what, true, "", "none on the PCI bus; none are needed")
	case errors.Is(err, nvml.ErrNoLibrary):
		m.find(what, false, "install NVIDIA's driver (its library libnvidia-ml.so.1 comes with it), or pass it into the container",
			"%d on the PCI bus, but %v", onBus, err)
	case err != nil:
		m.find(what, false, "run nvidia-smi: driver and library must be of one version and the driver loaded", "%v", err)
	case len(m.GPUs) == 0:
		m.find(what, onBus == 0, "grant the devices to this process (container, MIG, CUDA_VISIBLE_DEVICES)",
			"driver %s shows none, %d on the PCI bus", m.Driver, onBus)
	default:
		g := &m.GPUs[0]
		links := ""
		if g.NVLinks > 0 {
			links = fmt.Sprintf(", %d NVLinks each", g.NVLinks)
		}
		m.find(what, true, "", "%d × %s with %s, driver %s%s", len(m.GPUs), g.Name, size(g.Memory), m.Driver, links)
	}
}

// architecture is what is known of a compute capability: cores per
// multiprocessor, and dense fp16 operations of its tensor cores per clock.
type architecture struct {
	name          string
	cores, tensor int
	int8, fp8     bool
}

func architectureOf(major, minor int) architecture {
	switch {
	case major == 7 && minor == 0:
		return architecture{"Volta", 64, 1024, false, false}
	case major == 7:
		return architecture{"Turing", 64, 1024, true, false}
	case major == 8 && minor == 0:
		return architecture{"Ampere", 64, 2048, true, false}
	case major == 8 && minor < 9:
		return architecture{"Ampere", 128, 1024, true, false}
	case major == 8:
		return architecture{"Ada", 128, 1024, true, true}
	case major == 9:
		return architecture{"Hopper", 128, 4096, true, true}
	case major == 10:
		return architecture{"Blackwell", 128, 8192, true, true}
	case major >= 11:
		return architecture{"Blackwell", 128, 1024, true, true}
	}
	return architecture{name: "unknown"}
}

// linkSpeed is the bytes/s per direction of one NVLink, by generation.
func linkSpeed(generation int) float64 {
	speeds := [...]float64{0, 20e9, 25e9, 25e9, 25e9, 50e9, 100e9}
	if generation < 0 || generation >= len(speeds) {
		return 0
	}
	return speeds[generation]
}

// gpuSpec describes a GPU. The peaks are
//
//	fp16       multiprocessors × tensor operations per clock × highest clock
//	int8       twice that, where the tensor cores have int8
//	bandwidth  2 (both edges) × memory clock × bus width ÷ 8
//
// and 0 where the driver does not tell a part. For an A100: 108 × 2048 ×
// 1.41 GHz = 312 TFLOP/s; 2 × 1.593 GHz × 5,120 bits ÷ 8 = 2.04 TB/s.
func (m *Machine) gpuSpec(g nvml.Device) ieg.ResourceSpec {
	a := architectureOf(g.Major, g.Minor)
	spec := ieg.ResourceSpec{
		ID: fmt.Sprintf("CUDA%d", g.Index), Type: "GPU", Vendor: "NVIDIA",
		Model: strings.TrimPrefix(g.Name, "NVIDIA "), Series: a.name,
	}
	if a.cores > 0 {
		spec.Compute.FP16 = float64(g.Cores/a.cores) * float64(a.tensor) * float64(g.ClockMHz) * 1e6
	}
	spec.Compute.Precisions = []string{"fp32", "fp16"}
	if g.Major >= 8 {
		spec.Compute.Precisions = append(spec.Compute.Precisions, "bf16")
	}
	if a.int8 {
		spec.Compute.INT8 = 2 * spec.Compute.FP16
		spec.Compute.Precisions = append(spec.Compute.Precisions, "int8")
	}
	if a.fp8 {
		spec.Compute.Precisions = append(spec.Compute.Precisions, "fp8")
	}
	spec.Memory.VRAM = g.Memory
	spec.Memory.Bandwidth = 2 * float64(g.MemClockMHz) * 1e6 * float64(g.BusBits) / 8
	spec.Topology.Host = m.Host
	if g.NVLinks > 0 {
		spec.Interconnect.Type = "NVLink"
		spec.Interconnect.Bandwidth = float64(g.NVLinks) * linkSpeed(g.NVLinkVersion)
		spec.Topology.NVLinkDomain = m.Host + "/nvlink"
	}
	spec.Utilization.Compute = g.Compute
	if g.Memory > 0 {
		spec.Utilization.Memory = float64(g.Memory-g.Free) / float64(g.Memory)
	}
	return spec
}
