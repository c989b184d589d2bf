package nvml

import "errors"

// ErrNoLibrary: libnvidia-ml.so.1 is not on this host, so there is no NVIDIA
// driver.
var ErrNoLibrary = errors.New("libnvidia-ml.so.1 not found")

// library is the file name that the driver installs.
var library = "libnvidia-ml.so.1"

// Device is one GPU. A number that the driver does not tell is 0.
type Device struct {
	Index int
	Name  string // e.g. "NVIDIA H200"
	UUID  string
	PCI   string // e.g. "00000000:1B:00.0"
	// Major and Minor are the CUDA compute capability.
	Major, Minor int
	Cores        int     // CUDA cores
	ClockMHz     int     // highest of the multiprocessors
	MemClockMHz  int     // highest of the memory
	BusBits      int     // width of the memory bus
	Memory       int64   // bytes in all
	Free         int64   // bytes that nobody holds
	Compute      float64 // utilisation 0 … 1 over the last second
	MemoryUse    float64 // the same of the memory's bandwidth
	NVLinks      int     // active links
	// NVLinkVersion is the generation of the links: 1 (Pascal) … 5
	// (Blackwell).
	NVLinkVersion int
}

// Report is what the library says.
type Report struct {
	Driver  string // version of the driver
	Devices []Device
}

// generation turns the library's code of a link's version into a number.
func generation(code uint32) int {
	codes := [...]int{0, 1, 2, 2, 3, 3, 4, 5, 6}
	if code >= uint32(len(codes)) {
		return 0
	}
	return codes[code]
}
