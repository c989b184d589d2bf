package lib

// Version is the release of llama.cpp that the binding speaks.
const Version = "v0.5.0"

// Limits of a manifest and of what is unpacked, so that a broken file can't
// fill the disk.
const (
	// maxManifestBytes bounds MANIFEST; 21 lines of 100 bytes are usual.
	maxManifestBytes = 64 << 10
	// maxFiles bounds the entries of a folder.
	maxFiles = 256
	// maxFileBytes bounds one library.
	maxFileBytes = 256 << 20
	// digestChars of the manifest's digest name an unpacked folder.
	digestChars = 12
)
