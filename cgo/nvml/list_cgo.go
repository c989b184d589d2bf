//go:build cgo

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// List asks the driver for its devices. ErrNoLibrary: there is no driver.
func List() (Report, error) {
	lib := nvml.New(nvml.WithLibraryPath(library))
	switch ret := lib.Init(); ret {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return Report{}, ErrNoLibrary
	default:
		return Report{}, fmt.Errorf("NVML does not start: %s", lib.ErrorString(ret))
	}
	defer lib.Shutdown()
	var r Report
	r.Driver, _ = lib.SystemGetDriverVersion()
	n, ret := lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return r, fmt.Errorf("NVML lists no devices: %s", lib.ErrorString(ret))
	}
	for i := range min(n, maxDevices) {
		d, ret := lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			return r, fmt.Errorf("NVML hides device %d: %s", i, lib.ErrorString(ret))
		}
		r.Devices = append(r.Devices, describe(i, d))
	}
	return r, nil
}

// describe reads what one device tells; what it does not stays 0.
func describe(i int, d nvml.Device) Device {
	out := Device{Index: i}
	out.Name, _ = d.GetName()
	out.UUID, _ = d.GetUUID()
	if pci, ret := d.GetPciInfo(); ret == nvml.SUCCESS {
		out.PCI = text(pci.BusId[:])
	}
	out.Major, out.Minor, _ = d.GetCudaComputeCapability()
	out.Cores, _ = d.GetNumGpuCores()
	clock, _ := d.GetMaxClockInfo(nvml.CLOCK_SM)
	out.ClockMHz = int(clock)
	clock, _ = d.GetMaxClockInfo(nvml.CLOCK_MEM)
	out.MemClockMHz = int(clock)
	bus, _ := d.GetMemoryBusWidth()
	out.BusBits = int(bus)
	if m, ret := d.GetMemoryInfo(); ret == nvml.SUCCESS {
		out.Memory, out.Free = int64(m.Total), int64(m.Free)
	}
	if u, ret := d.GetUtilizationRates(); ret == nvml.SUCCESS {
		out.Compute, out.MemoryUse = float64(u.Gpu)/100, float64(u.Memory)/100
	}
	for link := range maxLinks {
		if state, ret := d.GetNvLinkState(link); ret == nvml.SUCCESS && state == nvml.FEATURE_ENABLED {
			out.NVLinks++
			version, _ := d.GetNvLinkVersion(link)
			out.NVLinkVersion = max(out.NVLinkVersion, generation(uint32(version)))
		}
	}
	return out
}

// text is a C string in a fixed field.
func text[T ~int8 | ~uint8](p []T) string {
	var b []byte
	for _, c := range p {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}
