// Package nvml lists the NVIDIA devices of this host through the driver's
// management library.
//
// It owns no policy and keeps nothing open: List loads the library, asks, and
// shuts it down again. With cgo it goes through NVIDIA's go-nvml; without cgo
// (the usual build of this program) through purego, with the same result. A
// host without the library is no fault of the program: ErrNoLibrary.
package nvml
