package nvme

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"

	"ieg"
)

// sealBytes is what encryption adds to a block.
const sealBytes = 16

// sealer encrypts blocks with AES-GCM, each under a random nonce, bound to its
// name.
type sealer struct{ aead cipher.AEAD }

// keys derives what encrypts the index and what encrypts the extents, so that
// neither can weaken the other.
func keys(key []byte) (index []byte, blocks *sealer, err error) {
	if len(key) == 0 {
		return nil, nil, nil
	}
	if index, err = hkdf.Key(sha256.New, key, nil, "ieg nvme index", len(key)); err != nil {
		return nil, nil, err
	}
	extents, err := hkdf.Key(sha256.New, key, nil, "ieg nvme extents", len(key))
	if err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(extents)
	if err != nil {
		return nil, nil, err
	}
	aead, err := cipher.NewGCM(block)
	return index, &sealer{aead}, err
}

// seal gathers the parts in buf, encrypted; the result may lie in buf.
func (s *sealer) seal(h ieg.BlockHash, buf []byte, parts [][]byte) (sealed []byte, nonce [nonceBytes]byte) {
	rand.Read(nonce[:])
	buf = buf[:0]
	for _, p := range parts {
		buf = append(buf, p...)
	}
	return s.aead.Seal(buf[:0], nonce[:], buf, h[:]), nonce
}

// open decrypts a block in place.
func (s *sealer) open(h ieg.BlockHash, nonce [nonceBytes]byte, sealed []byte) ([]byte, error) {
	return s.aead.Open(sealed[:0], nonce[:], sealed, h[:])
}
