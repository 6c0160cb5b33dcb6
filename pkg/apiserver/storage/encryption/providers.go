package encryption

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"time"

	"bonsai/pkg/apiserver/storage/encryption/kms"
)

// Prefixes of stored values, before the name of the key or of the KMS provider.
const (
	prefixAESCBC    = "k8s:enc:aescbc:v1:"
	prefixAESGCM    = "k8s:enc:aesgcm:v1:"
	prefixSecretbox = "k8s:enc:secretbox:v1:"
	prefixKMS       = "k8s:enc:kms:v2:"
)

// key is one way to seal and open: a key of a provider, a KMS provider, or identity.
type key struct {
	codec
	// prefix is how the values begin that it seals, and provider that of all keys of its kind.
	prefix, provider string
	// unknown is the error of a value of the provider whose key is not there.
	unknown error
}

var (
	errNoPrefix = errors.New("no matching prefix found")
	errNoAES    = errors.New("no matching key was found for the provided AES transformer")
	errNoBox    = errors.New("no matching key was found for the provided Secretbox transformer")
)

// keys are a resource's: the first one seals, all open.
type keys struct {
	all      []key
	resource string
	metrics  *metrics
}

// newKeys returns the keys of a provider in their order. The configuration is valid.
func newKeys(p *ProviderConfiguration, services map[string]*kms.Provider) ([]key, error) {
	switch {
	case p.AESCBC != nil:
		return namedKeys(p.AESCBC.Keys, prefixAESCBC, errNoAES, newAESCBC)
	case p.AESGCM != nil:
		return namedKeys(p.AESGCM.Keys, prefixAESGCM, errNoAES, newAESGCM)
	case p.Secretbox != nil:
		return namedKeys(p.Secretbox.Keys, prefixSecretbox, errNoBox, newSecretBox)
	case p.KMS != nil:
		prefix := prefixKMS + p.KMS.Name + ":"
		return []key{{codec: services[p.KMS.Name], prefix: prefix, provider: prefix}}, nil
	}
	return []key{{codec: identity{}}}, nil
}

func namedKeys(from []Key, provider string, unknown error,
	make func([]byte) (codec, error)) (out []key, err error) {
	for _, k := range from {
		secret, err := base64.StdEncoding.DecodeString(k.Secret)
		if err != nil {
			return nil, errors.New("secrets must be base64 encoded") // without the text of err, which has parts of it
		}
		t, err := make(secret)
		if err != nil {
			return nil, err
		}
		out = append(out, key{codec: t, prefix: provider + k.Name + ":", provider: provider, unknown: unknown})
	}
	return out, nil
}

// Seal implements storage.Transformer.
func (k *keys) Seal(_ context.Context, path, value []byte) ([]byte, error) {
	first := &k.all[0]
	begin := time.Now()
	var sealed []byte
	var err error
	if first.prefix == "" {
		sealed = value
	} else {
		// with room for what most providers add
		sealed = append(make([]byte, 0, len(first.prefix)+len(value)+64), first.prefix...)
		sealed, err = first.Append(sealed, path, value)
	}
	k.metrics.transformed(toStorage, k.resource, first.provider, time.Since(begin), err)
	return sealed, err
}

// Open implements storage.Transformer. Several keys may have one prefix, when a key is replaced by another one of its
// name: each is tried.
func (k *keys) Open(ctx context.Context, path, stored []byte) ([]byte, bool, error) {
	begin := time.Now()
	var failed error
	provider := "unknown"
	for i := range k.all {
		one := &k.all[i]
		if !bytes.HasPrefix(stored, []byte(one.provider)) {
			continue
		}
		if !bytes.HasPrefix(stored, []byte(one.prefix)) {
			if failed == nil {
				failed, provider = one.unknown, one.provider
			}
			continue
		}
		value, stale, err := one.codec.Open(ctx, path, stored[len(one.prefix):])
		if err == nil {
			k.metrics.transformed(fromStorage, k.resource, one.provider, time.Since(begin), nil)
			return value, stale || i > 0, nil
		}
		if one.prefix == "" { // identity met an encrypted value: another one may know it
			continue
		}
		failed, provider = err, one.provider
	}
	if failed == nil {
		failed = errNoPrefix
	}
	k.metrics.transformed(fromStorage, k.resource, provider, time.Since(begin), failed)
	return nil, false, failed
}

// AtHand implements storage.Transformer.
func (k *keys) AtHand(stored []byte) bool {
	for i := range k.all {
		one := &k.all[i]
		if bytes.HasPrefix(stored, []byte(one.prefix)) && !one.codec.AtHand(stored[len(one.prefix):]) {
			return false
		}
	}
	return true
}
