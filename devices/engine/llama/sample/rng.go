package sample

// Uniform is the number in [0, 1) that decides a draw: a hash of the seed, the
// choice, the position of the drawn token in its sequence and a salt that
// tells apart several draws at one position. It is counter based: nothing is
// carried from draw to draw.
//
// Each word goes through the finaliser of SplitMix64 (Steele, Lea, Flood 2014:
// "Fast splittable pseudorandom number generators"), keyed by the words before
// it; the top 53 bits are the fraction.
func Uniform(seed uint64, choice, position int32, salt uint32) float64 {
	h := mix(seed + golden)
	h = mix(h ^ (uint64(uint32(choice))<<32 | uint64(salt)) + golden)
	h = mix(h ^ uint64(uint32(position)) + golden)
	return float64(h>>11) * (1.0 / (1 << 53))
}

const golden = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
