// Package kmstest is a KMS v2 plug-in for tests. It can be slow, be down, change its key, and answer garbage.
package kmstest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"
)

// Plugin is the plug-in. Its keys are made of their IDs, so another Plugin decrypts what one has encrypted.
type Plugin struct {
	kmsapi.UnimplementedKeyManagementServiceServer
	// Endpoint is where it listens while it runs.
	Endpoint string
	// Encrypts and Decrypts count its calls.
	Encrypts, Decrypts atomic.Int64

	socket string
	mu     sync.Mutex
	keyID  string
	delay  time.Duration
	status func(*kmsapi.StatusResponse)
	answer func(*kmsapi.EncryptResponse)
	plain  func([]byte) []byte
	server *grpc.Server
	served chan struct{}
}

// New returns a plug-in that does not run yet, and stops it when the test ends.
func New(t testing.TB, keyID string) *Plugin {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms") // a test's own directory may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	p := &Plugin{socket: filepath.Join(dir, "kms.sock"), keyID: keyID}
	p.Endpoint = "unix://" + p.socket
	t.Cleanup(func() {
		p.Stop()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Start lets it listen.
func (p *Plugin) Start(t testing.TB) *Plugin {
	t.Helper()
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	p.server, p.served = grpc.NewServer(), make(chan struct{})
	kmsapi.RegisterKeyManagementServiceServer(p.server, p)
	go func() {
		defer close(p.served)
		_ = p.server.Serve(l) // ends with Stop
	}()
	return p
}

// Stop ends it at once, also calls under way.
func (p *Plugin) Stop() {
	if p.server != nil {
		p.server.Stop()
		<-p.served
		p.server = nil
	}
}

// Set changes how it answers.
func (p *Plugin) Set(change func(*Behaviour)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := Behaviour{KeyID: p.keyID, Delay: p.delay, Status: p.status, Encrypted: p.answer, Decrypted: p.plain}
	change(&b)
	p.keyID, p.delay, p.status, p.answer, p.plain = b.KeyID, b.Delay, b.Status, b.Encrypted, b.Decrypted
}

// Behaviour is how a plug-in answers. The functions change its answers; nil leaves them.
type Behaviour struct {
	KeyID     string
	Delay     time.Duration
	Status    func(*kmsapi.StatusResponse)
	Encrypted func(*kmsapi.EncryptResponse)
	Decrypted func([]byte) []byte
}

// behaves waits the delay, and returns how to answer.
func (p *Plugin) behaves(ctx context.Context) (Behaviour, error) {
	p.mu.Lock()
	b := Behaviour{KeyID: p.keyID, Delay: p.delay, Status: p.status, Encrypted: p.answer, Decrypted: p.plain}
	p.mu.Unlock()
	if b.Delay > 0 {
		select {
		case <-time.After(b.Delay):
		case <-ctx.Done():
			return b, ctx.Err()
		}
	}
	return b, nil
}

// Status implements the service.
func (p *Plugin) Status(ctx context.Context, _ *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	b, err := p.behaves(ctx)
	resp := &kmsapi.StatusResponse{Version: "v2", Healthz: "ok", KeyId: b.KeyID}
	if b.Status != nil {
		b.Status(resp)
	}
	return resp, err
}

// Encrypt implements the service.
func (p *Plugin) Encrypt(ctx context.Context, req *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	p.Encrypts.Add(1)
	b, err := p.behaves(ctx)
	if err != nil {
		return nil, err
	}
	aead := keyOf(b.KeyID)
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	resp := &kmsapi.EncryptResponse{KeyId: b.KeyID, Ciphertext: aead.Seal(nonce, nonce, req.Plaintext, nil),
		Annotations: map[string][]byte{"version.kmstest.example.org": []byte("1")}}
	if b.Encrypted != nil {
		b.Encrypted(resp)
	}
	return resp, nil
}

// Decrypt implements the service.
func (p *Plugin) Decrypt(ctx context.Context, req *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
	p.Decrypts.Add(1)
	b, err := p.behaves(ctx)
	if err != nil {
		return nil, err
	}
	aead := keyOf(req.KeyId)
	if len(req.Ciphertext) < aead.NonceSize() || string(req.Annotations["version.kmstest.example.org"]) != "1" {
		return nil, errors.New("not encrypted here")
	}
	plain, err := aead.Open(nil, req.Ciphertext[:aead.NonceSize()], req.Ciphertext[aead.NonceSize():], nil)
	if b.Decrypted != nil {
		plain = b.Decrypted(plain)
	}
	return &kmsapi.DecryptResponse{Plaintext: plain}, err
}

// keyOf is the key of an ID.
func keyOf(id string) cipher.AEAD {
	sum := sha256.Sum256([]byte(id))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has blocks of 16 bytes
	}
	return aead
}
