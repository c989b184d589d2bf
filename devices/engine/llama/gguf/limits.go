package gguf

// Limits of a file's header. A file over a limit is refused.
const (
	// maxPairs and maxTensors bound the tables (the largest models have about
	// 100 pairs and 3,000 tensors).
	maxPairs   = 4096
	maxTensors = 1 << 17
	// maxString bounds a key, a value or a name, in bytes.
	maxString = 16 << 20
	// maxArray bounds the elements of an array (vocabularies have up to about
	// 260,000).
	maxArray = 16 << 20
	// keepArray is the longest array whose elements are kept; of longer ones
	// only the length is.
	keepArray = 4096
	// maxHeader bounds header and tables together, in bytes.
	maxHeader = 512 << 20
	// maxDims is the most dimensions of a tensor.
	maxDims = 4
	// maxDepth is the deepest nesting of arrays.
	maxDepth = 2
)
