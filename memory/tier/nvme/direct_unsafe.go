package nvme

import "unsafe"

// aligned tells whether direct I/O can take the parts as they are: addresses
// and lengths on borders.
func aligned(parts [][]byte) bool {
	for _, p := range parts {
		if len(p)%alignBytes != 0 || uintptr(unsafe.Pointer(unsafe.SliceData(p)))%alignBytes != 0 {
			return false
		}
	}
	return true
}
