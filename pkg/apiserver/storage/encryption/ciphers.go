package encryption

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"

	"golang.org/x/crypto/nacl/secretbox"

	"bonsai/pkg/apiserver/storage"
)

// local are ciphers whose keys this process has.
type local struct{}

func (local) AtHand([]byte) bool { return true }

// aesGCM is AES in Galois/Counter Mode: a random nonce of 12 bytes, then the sealed value. The path is authenticated: a
// value that is copied under another key of etcd cannot be opened there.
type aesGCM struct {
	local
	aead cipher.AEAD
}

// newAESGCM makes the cipher of a key of 16, 24 or 32 bytes.
func newAESGCM(key []byte) (storage.Transformer, error) {
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

func (c aesGCM) Seal(_ context.Context, path, value []byte) ([]byte, error) {
	out := make([]byte, c.aead.NonceSize(), c.aead.NonceSize()+len(value)+c.aead.Overhead())
	_, _ = rand.Read(out) // never fails
	return c.aead.Seal(out, out, value, path), nil
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
func newAESCBC(key []byte) (storage.Transformer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return aesCBC{block: block}, nil
}

func (c aesCBC) Seal(_ context.Context, _, value []byte) ([]byte, error) {
	pad := aes.BlockSize - len(value)%aes.BlockSize
	out := make([]byte, aes.BlockSize+len(value)+pad)
	_, _ = rand.Read(out[:aes.BlockSize]) // never fails
	text := out[aes.BlockSize:]
	copy(text, value)
	for i := len(value); i < len(text); i++ {
		text[i] = byte(pad)
	}
	cipher.NewCBCEncrypter(c.block, out[:aes.BlockSize]).CryptBlocks(text, text)
	return out, nil
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
func newSecretBox(key []byte) (storage.Transformer, error) {
	if len(key) != 32 {
		return nil, fmt.Errorf("secretbox: invalid key size %d", len(key))
	}
	return secretBox{key: (*[32]byte)(key)}, nil
}

func (c secretBox) Seal(_ context.Context, _, value []byte) ([]byte, error) {
	out := make([]byte, boxNonce, boxNonce+len(value)+secretbox.Overhead)
	_, _ = rand.Read(out) // never fails
	return secretbox.Seal(out, value, (*[boxNonce]byte)(out), c.key), nil
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

func (identity) Seal(_ context.Context, _, value []byte) ([]byte, error) { return value, nil }

func (identity) Open(_ context.Context, _, stored []byte) ([]byte, bool, error) {
	if storage.Encrypted(stored) {
		return nil, false, storage.ErrEncrypted
	}
	return stored, false, nil
}
