package devices

import (
	"math"
	"runtime"
	"sync"
	"time"
)

// Speed is what Measure found of a CPU.
type Speed struct {
	FLOPs     float64 // per second in float32, which is how fp16 is computed
	Ops       float64 // the same in int8
	Bandwidth float64 // bytes/s read from memory
}

// Measure measures this host's CPU with a number of threads (CPU.Granted), in
// about 100 ms. It wants an idle machine; beside a running engine it shows
// what is left.
//
//	FLOP/s     fused multiply-adds (2 FLOPs) of the widest vectors (AVX-512,
//	           AVX2; elsewhere scalar), all threads together
//	int8 OP/s  the same with AVX-512 VNNI, where there is one
//	bandwidth  sum over 64 MiB, all threads together; on a CPU whose caches
//	           are larger it is the caches' bandwidth
//
// They are peaks of the instructions, not what a kernel of ggml reaches; AMX is
// not counted.
func Measure(threads int) Speed {
	threads = max(min(threads, runtime.GOMAXPROCS(0)), 1)
	buffer := make([]uint64, measureBytes/8)
	for i := 0; i < len(buffer); i += 512 { // a page each
		buffer[i] = 1
	}
	return Speed{
		FLOPs:     rate(threads, measureTime/3, multiplyAdd),
		Ops:       rate(threads, measureTime/3, dot),
		Bandwidth: rate(threads, measureTime/3, reading(buffer, threads)),
	}
}

// rate runs a piece of work again and again on several threads and returns its
// units per second, all threads together. Each thread stops after d.
func rate(threads int, d time.Duration, work func(thread, round int) float64) float64 {
	var wg sync.WaitGroup
	rates := make([]float64, threads)
	for i := range threads {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			units, round := 0.0, 0
			begin := time.Now()
			for elapsed := time.Duration(0); elapsed < d; elapsed = time.Since(begin) {
				units += work(i, round)
				round++
			}
			rates[i] = units / time.Since(begin).Seconds()
		})
	}
	wg.Wait()
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	return sum
}

// sink keeps the compiler from leaving the work out.
var sink sync.Map

// scalarMultiplyAdd does 8 × 4096 multiply-adds and returns their FLOPs.
func scalarMultiplyAdd(thread, _ int) float64 {
	const n = 4096
	a, b, c, d, e, f, g, h := 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7
	const x, y = 0.999999, 1e-9
	for range n {
		a, b, c, d = math.FMA(a, x, y), math.FMA(b, x, y), math.FMA(c, x, y), math.FMA(d, x, y)
		e, f, g, h = math.FMA(e, x, y), math.FMA(f, x, y), math.FMA(g, x, y), math.FMA(h, x, y)
	}
	sink.Store(thread, a+b+c+d+e+f+g+h)
	return 2 * 8 * n
}

// reading returns work that reads a slice of the buffer, another each round,
// and returns its bytes.
func reading(buffer []uint64, threads int) func(thread, round int) float64 {
	const part = 1 << 20 / 8
	parts := len(buffer) / part
	return func(thread, round int) float64 {
		at := (thread*parts/threads + round) % parts
		p := buffer[at*part : (at+1)*part]
		var a, b, c, d uint64
		for i := 0; i+8 <= len(p); i += 8 {
			q := p[i : i+8 : i+8]
			a += q[0] + q[4]
			b += q[1] + q[5]
			c += q[2] + q[6]
			d += q[3] + q[7]
		}
		sink.Store(thread, a+b+c+d)
		return part * 8
	}
}
