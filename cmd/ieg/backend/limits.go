package backend

const (
	// FilesMax bounds the entries of an archive.
	FilesMax = 256
	// FileBytesMax bounds one file of an archive.
	FileBytesMax = 1 << 30
	// ArchiveBytesMax bounds an archive.
	ArchiveBytesMax = 1 << 30
	// OutputBytesMax bounds what is kept of the package manager's output.
	OutputBytesMax = 16 << 10
)
