//go:build !amd64

package codec

func packerF16([]byte) packer      { return packPlainF16 }
func packerBF16([]byte) packer     { return packPlainBF16 }
func unpackerF16([]byte) unpacker  { return unpackPlainF16 }
func unpackerBF16([]byte) unpacker { return unpackPlainBF16 }
