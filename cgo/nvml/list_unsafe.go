//go:build !cgo

package nvml

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// textBytes bounds a name, an id or a version.
const textBytes = 96

const (
	success  = 0
	clockSM  = 1
	clockMem = 2
	// Offset of the bus id in nvmlPciInfo_t: a legacy id of 16 bytes and five
	// unsigned ints come before it.
	pciBusID = 16 + 5*4
)

// answers is where the library writes what it is asked for. It is a variable
// of the package, since Go does not move those; mu guards it.
var (
	mu      sync.Mutex
	answers [64]uint64
)

// at is the address of byte i of answers.
func at(i int) uintptr { return uintptr(unsafe.Pointer(&answers)) + uintptr(i) }

// bytesAt returns a copy of n bytes of answers from byte i on.
func bytesAt(i, n int) []byte {
	return bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&answers)), unsafe.Sizeof(answers))[i : i+n])
}

func u32At(i int) uint32 { return binary.NativeEndian.Uint32(bytesAt(i, 4)) }

// symbols are the library's functions, called by name.
type symbols struct{ handle uintptr }

// call returns the function's code. A function that the driver lacks (their
// age decides) is a failure like another.
func (s symbols) call(name string, args ...uintptr) uintptr {
	addr, err := purego.Dlsym(s.handle, name)
	if err != nil || addr == 0 {
		return ^uintptr(0)
	}
	clear(answers[:])
	r, _, _ := purego.SyscallN(addr, args...)
	return r & 0xffffffff
}

// List asks the driver for its devices. ErrNoLibrary: there is no driver.
func List() (Report, error) {
	mu.Lock()
	defer mu.Unlock()
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return Report{}, ErrNoLibrary
	}
	defer purego.Dlclose(handle)
	s := symbols{handle}
	if r := s.call("nvmlInit_v2"); r != success {
		return Report{}, fmt.Errorf("NVML does not start: code %d", r)
	}
	defer s.call("nvmlShutdown")
	r := Report{Driver: s.text("nvmlSystemGetDriverVersion", at(0), textBytes)}
	if code := s.call("nvmlDeviceGetCount_v2", at(0)); code != success {
		return r, fmt.Errorf("NVML lists no devices: code %d", code)
	}
	for i := range min(u32At(0), maxDevices) {
		if code := s.call("nvmlDeviceGetHandleByIndex_v2", uintptr(i), at(0)); code != success {
			return r, fmt.Errorf("NVML hides device %d: code %d", i, code)
		}
		r.Devices = append(r.Devices, s.describe(int(i), uintptr(answers[0])))
	}
	return r, nil
}

// describe reads what one device tells; what it does not stays 0.
func (s symbols) describe(i int, d uintptr) Device {
	out := Device{
		Index:       i,
		Name:        s.text("nvmlDeviceGetName", d, at(0), textBytes),
		UUID:        s.text("nvmlDeviceGetUUID", d, at(0), textBytes),
		Cores:       s.number("nvmlDeviceGetNumGpuCores", d, at(0)),
		ClockMHz:    s.number("nvmlDeviceGetMaxClockInfo", d, clockSM, at(0)),
		MemClockMHz: s.number("nvmlDeviceGetMaxClockInfo", d, clockMem, at(0)),
		BusBits:     s.number("nvmlDeviceGetMemoryBusWidth", d, at(0)),
	}
	if s.call("nvmlDeviceGetPciInfo_v3", d, at(0)) == success {
		out.PCI = cString(bytesAt(pciBusID, 32))
	}
	if s.call("nvmlDeviceGetCudaComputeCapability", d, at(0), at(4)) == success {
		out.Major, out.Minor = int(u32At(0)), int(u32At(4))
	}
	if s.call("nvmlDeviceGetMemoryInfo", d, at(0)) == success {
		out.Memory, out.Free = int64(answers[0]), int64(answers[1])
	}
	if s.call("nvmlDeviceGetUtilizationRates", d, at(0)) == success {
		out.Compute, out.MemoryUse = float64(u32At(0))/100, float64(u32At(4))/100
	}
	for link := range uintptr(maxLinks) {
		if s.number("nvmlDeviceGetNvLinkState", d, link, at(0)) == 1 {
			out.NVLinks++
			out.NVLinkVersion = max(out.NVLinkVersion, generation(uint32(s.number("nvmlDeviceGetNvLinkVersion", d, link, at(0)))))
		}
	}
	return out
}

// number calls a function that writes an unsigned int to the start of answers.
func (s symbols) number(name string, args ...uintptr) int {
	if s.call(name, args...) != success {
		return 0
	}
	return int(u32At(0))
}

// text calls a function that writes a string to the start of answers.
func (s symbols) text(name string, args ...uintptr) string {
	if s.call(name, args...) != success {
		return ""
	}
	return cString(bytesAt(0, textBytes))
}

// cString is the text before the first zero byte.
func cString(p []byte) string {
	p, _, _ = bytes.Cut(p, []byte{0})
	return string(p)
}
