package cuda

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// driver is the open library.
type driver struct{ handle uintptr }

// open opens the library; it is found again if a backend has opened it.
func open() (*driver, error) {
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDriver, err)
	}
	return &driver{handle}, nil
}

// call calls a function by name. Its failure begins with what.
func (d *driver) call(what, name string, args ...uintptr) error {
	code, err := d.code(name, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if code == success {
		return nil
	}
	return failure(what, code, d.text("cuGetErrorName", code), d.text("cuGetErrorString", code))
}

// code calls a function and returns its CUresult, an int of 32 bits.
func (d *driver) code(name string, args ...uintptr) (uint32, error) {
	at, err := purego.Dlsym(d.handle, name)
	if err != nil || at == 0 {
		return invalidValue, fmt.Errorf("%s has no %s: the driver is too old", library, name)
	}
	answers = 0
	r, _, _ := purego.SyscallN(at, args...)
	return uint32(r), nil
}

// text is what a function of the driver says of a code; "" if nothing.
func (d *driver) text(name string, code uint32) string {
	if r, err := d.code(name, uintptr(code), answer()); err != nil || r != success || answers == 0 {
		return ""
	}
	var b []byte
	for p := *(**byte)(unsafe.Pointer(&answers)); *p != 0 && len(b) < textBytes; p = (*byte)(unsafe.Add(unsafe.Pointer(p), 1)) {
		b = append(b, *p)
	}
	return string(b)
}

// answers is where the driver writes what it is asked for: a pointer, or a
// CUdevice of 32 bits. It is a variable of the package, since Go does not move
// those.
var answers uintptr

func answer() uintptr { return uintptr(unsafe.Pointer(&answers)) }

func answerPointer() uintptr { return answers }

func answer32() int32 { return *(*int32)(unsafe.Pointer(&answers)) }

func address(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }
