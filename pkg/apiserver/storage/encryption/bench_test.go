package encryption_test

import (
	"bytes"
	"testing"

	"bonsai/pkg/apiserver/storage/encryption/kmstest"
)

// BenchmarkSecret seals and opens a Secret of 2 KiB by each provider.
func BenchmarkSecret(b *testing.B) {
	plugin := kmstest.New(b, "a").Start(b)
	value := bytes.Repeat([]byte("x"), 2048)
	for name, provider := range map[string]string{"identity": "identity: {}", "aescbc": keyed("aescbc", "k", 32, 1),
		"aesgcm": keyed("aesgcm", "k", 32, 1), "secretbox": keyed("secretbox", "k", 32, 1), "kms": kmsOf(plugin)} {
		b.Run(name, func(b *testing.B) {
			s := start(b, document(rule("secrets", provider)))
			b.ReportAllocs()
			for b.Loop() {
				t := s.Transformer(secretKey)
				stored, err := t.Seal(b.Context(), []byte(secretKey), value)
				if err != nil {
					b.Fatal(err)
				}
				if _, _, err := t.Open(b.Context(), []byte(secretKey), stored); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNotEncrypted is what a value costs that no rule names, beside a configuration that encrypts others.
func BenchmarkNotEncrypted(b *testing.B) {
	s := start(b, document(rule("secrets", keyed("aesgcm", "k", 32, 1))))
	b.ReportAllocs()
	for b.Loop() {
		if s.Transformer("/registry/pods/default/web-5d9c7b9b4b-abcde") != nil {
			b.Fatal("pods are encrypted")
		}
	}
}
