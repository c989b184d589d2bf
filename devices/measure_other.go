//go:build !amd64

package devices

func multiplyAdd(thread, round int) float64 { return scalarMultiplyAdd(thread, round) }

func dot(thread, round int) float64 { return scalarMultiplyAdd(thread, round) }
