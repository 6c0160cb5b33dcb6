package encryption

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/nacl/secretbox"

	"bonsai/pkg/apiserver/storage"
)

// codec is how one key seals and opens values, without the prefix.
type codec interface {
	// Append appends what is stored of value to dst.
	Append(dst, path, value []byte) ([]byte, error)
	// Open and AtHand are those of storage.Transformer.
	Open(ctx context.Context, path, stored []byte) (value []byte, stale bool, err error)
	AtHand(stored []byte) bool
}

// local are ciphers whose keys this process has.
type local struct{}

// random appends n random bytes to dst, which has room for more bytes behind them.
func random(dst []byte, n, more int) (all, fresh []byte) {
	at := len(dst)
	all = slices.Grow(dst, n+more)[:at+n]
	_, _ = rand.Read(all[at:]) // never fails
	return all, all[at:]
}

func (local) AtHand([]byte) bool { return true }

// aesGCM is AES in Galois/Counter Mode: a random nonce of 12 bytes, then the sealed value. The path is authenticated: a
// value that is copied under another key of etcd cannot be opened there.
type aesGCM struct {
	local
	aead cipher.AEAD
}

// newAESGCM makes the cipher of a key of 16, 24 or 32 bytes.
func newAESGCM(key []byte) (codec, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return aesGCM{aead: aead}, nil
}

func (c aesGCM) Append(dst, path, value []byte) ([]byte, error) {
	dst, nonce := random(dst, c.aead.NonceSize(), len(value)+c.aead.Overhead())
	return c.aead.Seal(dst, nonce, value, path), nil
}

func (c aesGCM) Open(_ context.Context, path, stored []byte) ([]byte, bool, error) {
	n := c.aead.NonceSize()
	if len(stored) < n {
		return nil, false, errors.New("the stored data was shorter than the required size")
	}
	value, err := c.aead.Open(nil, stored[:n], stored[n:], path)
	return value, false, err
}

// aesCBC is AES in Cipher Block Chaining mode: a random block, then the value, padded to whole blocks by PKCS #7.
// Nothing is authenticated.
type aesCBC struct {
	local
	block cipher.Block
}

// newAESCBC makes the cipher of a key of 16, 24 or 32 bytes.
func newAESCBC(key []byte) (codec, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return aesCBC{block: block}, nil
}

func (c aesCBC) Append(dst, _, value []byte) ([]byte, error) {
	pad := aes.BlockSize - len(value)%aes.BlockSize
	dst, first := random(dst, aes.BlockSize, len(value)+pad)
	at := len(dst)
	dst = append(dst, value...)
	for range pad {
		dst = append(dst, byte(pad))
	}
	cipher.NewCBCEncrypter(c.block, first).CryptBlocks(dst[at:], dst[at:])
	return dst, nil
}

func (c aesCBC) Open(_ context.Context, _, stored []byte) ([]byte, bool, error) {
	if len(stored) < 2*aes.BlockSize {
		return nil, false, errors.New("the stored data was shorter than the required size")
	}
	if len(stored)%aes.BlockSize != 0 {
		return nil, false, errors.New("the stored data is not a multiple of the block size")
	}
	value := make([]byte, len(stored)-aes.BlockSize)
	cipher.NewCBCDecrypter(c.block, stored[:aes.BlockSize]).CryptBlocks(value, stored[aes.BlockSize:])
	pad := int(value[len(value)-1])
	if pad == 0 || pad > aes.BlockSize {
		return nil, false, errPadding
	}
	for _, b := range value[len(value)-pad:] {
		if int(b) != pad {
			return nil, false, errPadding
		}
	}
	return value[:len(value)-pad], false, nil
}

var errPadding = errors.New("invalid padding on input")

// secretBox is NaCl's secretbox (XSalsa20 and Poly1305): a random nonce of 24 bytes, then the sealed value. The path is
// not authenticated.
type secretBox struct {
	local
	key *[32]byte
}

const boxNonce = 24

// newSecretBox makes the cipher of a key of 32 bytes.
func newSecretBox(key []byte) (codec, error) {
	if len(key) != 32 {
		return nil, fmt.Errorf("secretbox: invalid key size %d", len(key))
	}
	return secretBox{key: (*[32]byte)(key)}, nil
}

func (c secretBox) Append(dst, _, value []byte) ([]byte, error) {
	dst, nonce := random(dst, boxNonce, len(value)+secretbox.Overhead)
	return secretbox.Seal(dst, value, (*[boxNonce]byte)(nonce), c.key), nil
}

func (c secretBox) Open(_ context.Context, _, stored []byte) ([]byte, bool, error) {
	if len(stored) < boxNonce+secretbox.Overhead {
		return nil, false, errors.New("the stored data was shorter than the required size")
	}
	value, ok := secretbox.Open(nil, stored[boxNonce:], (*[boxNonce]byte)(stored), c.key)
	if !ok {
		return nil, false, errors.New("output array was not large enough for encryption")
	}
	return value, false, nil
}

// identity keeps values as they are.
type identity struct{ local }

func (identity) Append(dst, _, value []byte) ([]byte, error) { return append(dst, value...), nil }

func (identity) Open(_ context.Context, _, stored []byte) ([]byte, bool, error) {
	if storage.Encrypted(stored) {
		return nil, false, storage.ErrEncrypted
	}
	return stored, false, nil
}
