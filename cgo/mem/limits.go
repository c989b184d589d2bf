package mem

const (
	// maxNameBytes is the longest name that the kernel takes.
	maxNameBytes = 249
	// maxBytes bounds a map: 64 TiB, half of what a process can address.
	maxBytes = 1 << 46
)
