//go:build !embedlib

package lib

// Without the tag nothing is embedded: libraries come from the cache.
var embeddedArchive, embeddedManifest []byte
