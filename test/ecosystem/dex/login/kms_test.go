package login

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/kms/pkg/service"
)

// kms is a KMS v2 plug-in with one key, by Kubernetes' own library for such plug-ins.
type kms struct {
	sealer             cipher.AEAD
	encrypts, decrypts atomic.Int64
}

// startKMS starts a plug-in and returns its endpoint.
func startKMS(t *testing.T) (*kms, string) {
	t.Helper()
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	k, socket := &kms{sealer: sealer}, filepath.Join(t.TempDir(), "kms")
	s := service.NewGRPCService(socket, 10*time.Second, k)
	ended := make(chan error, 1)
	go func() { ended <- s.ListenAndServe() }()
	t.Cleanup(func() {
		s.Shutdown()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return k, "unix://" + socket
}

// Status implements service.Service.
func (k *kms) Status(context.Context) (*service.StatusResponse, error) {
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: "one"}, nil
}

// Encrypt implements service.Service.
func (k *kms) Encrypt(_ context.Context, _ string, plain []byte) (*service.EncryptResponse, error) {
	k.encrypts.Add(1)
	return &service.EncryptResponse{Ciphertext: k.sealer.Seal(nil, nil, plain, nil), KeyID: "one"}, nil
}

// Decrypt implements service.Service.
func (k *kms) Decrypt(_ context.Context, _ string, req *service.DecryptRequest) ([]byte, error) {
	if req.KeyID != "one" {
		return nil, fmt.Errorf("no key %q", req.KeyID)
	}
	k.decrypts.Add(1)
	return k.sealer.Open(nil, nil, req.Ciphertext, nil)
}
