package gguf

// Has tells whether a key exists.
func (f *File) Has(key string) bool { _, ok := f.meta[key]; return ok }

// Uint returns an unsigned or non-negative whole number.
func (f *File) Uint(key string) (uint64, bool) { return asUint(f.meta[key]) }

func asUint(v any) (uint64, bool) {
	switch x := v.(type) {
	case uint64:
		return x, true
	case int64:
		return uint64(x), x >= 0
	}
	return 0, false
}

// Float returns a floating-point number.
func (f *File) Float(key string) (float64, bool) { v, ok := f.meta[key].(float64); return v, ok }

// Bool returns a truth value.
func (f *File) Bool(key string) (value, ok bool) { value, ok = f.meta[key].(bool); return value, ok }

// String returns a text; "" if the key is missing or of another type.
func (f *File) String(key string) string { s, _ := f.meta[key].(string); return s }

// Array returns an array.
func (f *File) Array(key string) (Array, bool) { a, ok := f.meta[key].(Array); return a, ok }

// PerLayer returns a whole number for each of n layers: one value for all, or
// an array with one each.
func (f *File) PerLayer(key string, n int) ([]int, bool) {
	out := make([]int, n)
	if v, ok := f.Uint(key); ok {
		for i := range out {
			out[i] = int(v)
		}
		return out, true
	}
	a, ok := f.Array(key)
	if !ok || len(a.Elems) < n {
		return nil, false
	}
	for i := range out {
		switch x := a.Elems[i].(type) {
		case bool:
			if x {
				out[i] = 1
			}
		default:
			v, ok := asUint(x)
			if !ok {
				return nil, false
			}
			out[i] = int(v)
		}
	}
	return out, true
}
