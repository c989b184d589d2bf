//go:build embedlib

package lib

import _ "embed"

// Made by "make build" before the compiler runs; not in the repository.
var (
	//go:embed cpu.tar.gz
	embeddedArchive []byte
	//go:embed MANIFEST
	embeddedManifest []byte
)
