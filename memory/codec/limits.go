package codec

const (
	// groupElems is the number of elements that share a scale.
	groupElems = 64
	// groupBytes is the length of a raw group, packedBytes that of a packed
	// one with its scale.
	groupBytes  = 2 * groupElems
	scaleBytes  = 2
	packedBytes = scaleBytes + groupElems
	// callGroups bounds a call of vector code, which can't be interrupted:
	// half a MiB, tens of microseconds.
	callGroups = 4096
	// pastBytes is the least that is written past the caches: as much as would
	// take most of them, and be read again long after.
	pastBytes = 16 << 20
)
