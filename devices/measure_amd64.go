package devices

import "golang.org/x/sys/cpu"

// fma256 and fma512 do n × 12 multiply-adds of 8 and 16 float32 values;
// dot512 does n × 12 × 64 multiply-adds of int8.
func fma256(n int)
func fma512(n int)
func dot512(n int)

const (
	innerRounds = 4096
	innerChains = 12
)

// multiplyAdd does multiply-adds with the widest vectors of this processor and
// returns their FLOPs.
func multiplyAdd(thread, round int) float64 {
	switch {
	case cpu.X86.HasAVX512F:
		fma512(innerRounds)
		return 2 * 16 * innerChains * innerRounds
	case cpu.X86.HasFMA && cpu.X86.HasAVX2:
		fma256(innerRounds)
		return 2 * 8 * innerChains * innerRounds
	}
	return scalarMultiplyAdd(thread, round)
}

// dot does the same with int8, where the processor has instructions for it.
func dot(thread, round int) float64 {
	if !cpu.X86.HasAVX512VNNI {
		return multiplyAdd(thread, round)
	}
	dot512(innerRounds)
	return 2 * 64 * innerChains * innerRounds
}
