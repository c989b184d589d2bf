package llama

import (
	"fmt"
	"strings"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
)

// Devices lists the devices that the libraries in a folder can compute on. It
// loads them into this process, so it belongs into an engine's.
func Devices(libDir string) ([]ieg.ResourceSpec, error) {
	if _, err := openLibrary(libDir); err != nil {
		return nil, err
	}
	var out []ieg.ResourceSpec
	for i := range yz.GGMLBackendDeviceCount() {
		if dev := yz.GGMLBackendDeviceGet(i); computes(dev) {
			out = append(out, resource(dev))
		}
	}
	return out, nil
}

// computes tells devices that run a whole model from helpers of the CPU.
func computes(dev yz.GGMLBackendDevice) bool {
	switch yz.GGMLBackendDevType(dev) {
	case yz.GGMLBackendDeviceTypeCPU, yz.GGMLBackendDeviceTypeGPU, yz.GGMLBackendDeviceTypeIGPU:
		return true
	}
	return false
}

// vendors are told by words of a device's description.
var vendors = [][2]string{
	{"nvidia", "NVIDIA"}, {"geforce", "NVIDIA"}, {"amd", "AMD"}, {"radeon", "AMD"}, {"epyc", "AMD"},
	{"intel", "Intel"}, {"xeon", "Intel"}, {"apple", "Apple"}, {"llvmpipe", "Mesa"},
}

func resource(dev yz.GGMLBackendDevice) ieg.ResourceSpec {
	var s ieg.ResourceSpec
	s.ID, s.Model = yz.GGMLBackendDeviceName(dev), yz.GGMLBackendDeviceDescription(dev)
	s.Type = "GPU"
	if yz.GGMLBackendDevType(dev) == yz.GGMLBackendDeviceTypeCPU {
		s.Type = "CPU"
	}
	low := strings.ToLower(s.Model)
	for _, v := range vendors {
		if strings.Contains(low, v[0]) {
			s.Vendor = v[1]
			break
		}
	}
	s.Series = backendName(dev)
	free, total := yz.GGMLBackendDeviceMemory(dev)
	s.Memory.VRAM = int64(total)
	if total > 0 {
		s.Utilization.Memory = 1 - float64(free)/float64(total)
	}
	s.Compute.Precisions = []string{"fp32", "fp16", "int8"}
	return s
}

// backendName is the backend that owns a device: "CPU", "Vulkan", "CUDA" …
func backendName(dev yz.GGMLBackendDevice) string {
	return yz.GGMLBackendRegName(yz.GGMLBackendDeviceBackendReg(dev))
}

// findDevice finds a device by name; 0 stands for the CPU.
func findDevice(name string) (dev yz.GGMLBackendDevice, id, backend string, err error) {
	cpu := yz.GGMLBackendDeviceByType(yz.GGMLBackendDeviceTypeCPU)
	var names []string
	for i := range yz.GGMLBackendDeviceCount() {
		d := yz.GGMLBackendDeviceGet(i)
		if !computes(d) {
			continue
		}
		n := yz.GGMLBackendDeviceName(d)
		names = append(names, n)
		if strings.EqualFold(n, name) && d != cpu {
			return d, n, backendName(d), nil
		}
	}
	if name == "" || strings.EqualFold(name, yz.GGMLBackendDeviceName(cpu)) {
		return 0, yz.GGMLBackendDeviceName(cpu), backendName(cpu), nil
	}
	return 0, "", "", fmt.Errorf("%w: no device %q; these libraries have %s", ieg.ErrUnsupported, name, strings.Join(names, ", "))
}
