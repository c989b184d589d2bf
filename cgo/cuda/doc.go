// Package cuda registers host memory with NVIDIA's driver, so that copies
// between it and a device go by DMA without a detour through the driver's own
// buffers.
//
// It goes through the driver API (libcuda.so.1) that libraries of a backend
// use as well: the context is the device's primary one, which they share. What
// a calling thread had as its context it has again afterwards. The library is
// never closed. A host without it is no fault of the program: ErrNoDriver.
//
// Functions and numbers are those of NVIDIA's cuda.h, by the names under which
// the library exports them (a header's cuMemHostRegister is the library's
// cuMemHostRegister_v2).
//
// Checked so far against a library made for the tests only, which follows that
// header; no driver and no GPU has run it.
package cuda
