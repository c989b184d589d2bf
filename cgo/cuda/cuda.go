package cuda

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
)

var (
	// ErrNoDriver: libcuda.so.1 can't be opened, so there is no NVIDIA driver.
	ErrNoDriver = errors.New("NVIDIA's driver is not here")
	// ErrOutOfMemory: the host or the driver has no memory for what was asked.
	ErrOutOfMemory = errors.New("out of memory")
)

// library is the file name that the driver installs.
var library = "libcuda.so.1"

// From cuda.h: codes of CUresult and a flag of cuMemHostRegister.
const (
	success      = 0 // CUDA_SUCCESS
	invalidValue = 1 // CUDA_ERROR_INVALID_VALUE
	outOfMemory  = 2 // CUDA_ERROR_OUT_OF_MEMORY
	portable     = 1 // CU_MEMHOSTREGISTER_PORTABLE: pinned for all contexts
)

// mu guards the driver's answers.
var mu sync.Mutex

// Register pins mem for the device of that ordinal and all others of the
// process. The memory must be mapped until release, and in no part be
// registered already. All of it is taken from the host at once, which takes
// about as long as writing it.
//
// ErrNoDriver: there is no driver; ErrOutOfMemory: there is not enough memory;
// any other error is the driver's word. Nothing stays registered after one.
//
// release undoes it once. Copies must have ended.
func Register(mem []byte, device int) (release func() error, err error) {
	if len(mem) == 0 {
		return nil, errors.New("CUDA can't pin 0 bytes")
	}
	if device < 0 || device > math.MaxInt32 {
		return nil, fmt.Errorf("CUDA has no device %d", device)
	}
	mu.Lock()
	defer mu.Unlock()
	// A context belongs to a thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d, err := open()
	if err != nil {
		return nil, err
	}
	dev, ctx, err := d.retain(device)
	if err != nil {
		return nil, err
	}
	if err := d.pin(mem, ctx); err != nil {
		return nil, errors.Join(err, d.release(dev))
	}
	return sync.OnceValue(func() error {
		mu.Lock()
		defer mu.Unlock()
		return errors.Join(d.unpin(mem), d.release(dev))
	}), nil
}

// retain starts the driver and takes hold of a device's primary context.
func (d *driver) retain(ordinal int) (dev int32, ctx uintptr, err error) {
	if err := d.call("CUDA does not start", "cuInit", 0); err != nil {
		return 0, 0, err
	}
	if err := d.call(fmt.Sprintf("CUDA has no device %d", ordinal), "cuDeviceGet", answer(), uintptr(ordinal)); err != nil {
		return 0, 0, err
	}
	dev = answer32()
	err = d.call(fmt.Sprintf("CUDA can't use device %d", ordinal), "cuDevicePrimaryCtxRetain", answer(), uintptr(dev))
	return dev, answerPointer(), err
}

func (d *driver) release(dev int32) error {
	return d.call("CUDA can't release the device's context", "cuDevicePrimaryCtxRelease_v2", uintptr(dev))
}

// pin registers mem under a context, which is the thread's meanwhile.
func (d *driver) pin(mem []byte, ctx uintptr) error {
	if err := d.call("CUDA hides the thread's context", "cuCtxGetCurrent", answer()); err != nil {
		return err
	}
	before := answerPointer()
	if err := d.call("CUDA refuses the device's context", "cuCtxSetCurrent", ctx); err != nil {
		return err
	}
	err := d.call("CUDA can't pin "+size(len(mem)), "cuMemHostRegister_v2", address(mem), uintptr(len(mem)), portable)
	back := d.call("CUDA can't give the thread its context back", "cuCtxSetCurrent", before)
	if err == nil && back != nil {
		return errors.Join(back, d.unpin(mem))
	}
	return errors.Join(err, back)
}

func (d *driver) unpin(mem []byte) error {
	return d.call("CUDA can't unpin "+size(len(mem)), "cuMemHostUnregister", address(mem))
}

// failure is a code in words: what failed, the driver's text, its name.
func failure(what string, code uint32, name, text string) error {
	if name == "" {
		name = fmt.Sprintf("code %d", code)
	}
	if code == outOfMemory {
		return fmt.Errorf("%s: %w (%s)", what, ErrOutOfMemory, name)
	}
	if text == "" {
		return fmt.Errorf("%s: %s", what, name)
	}
	return fmt.Errorf("%s: %s (%s)", what, text, name)
}

// size is a number of bytes for people.
func size(n int) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}
