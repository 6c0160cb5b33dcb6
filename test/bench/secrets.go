package main

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/kms/pkg/service"
)

const (
	secretsPath = "/api/v1/namespaces/" + namespace + "/secrets"
	// secretRounds are how often each server gets its turn, and secretsInRound how many Secrets it makes in one.
	secretRounds, secretsInRound = 45, 200
)

// measureSecrets makes Secrets on three fresh API servers that differ in how they keep them. The servers take turns, so
// that a busy machine slows all of them alike. A rate, or a ratio of two, is the middle one of the rounds.
func measureSecrets(ctx context.Context, s side) ([]figure, error) {
	dir, err := os.MkdirTemp("", "bonsai-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "kms.sock")
	kms := service.NewGRPCService(socket, 10*time.Second, newKeeper())
	served := make(chan error, 1)
	go func() { served <- kms.ListenAndServe() }()
	defer func() {
		kms.Close()
		<-served
	}()
	key := `{"keys":[{"name":"k","secret":"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}]}`
	ways := []struct{ name, provider string }{
		{name: "not encrypted"},
		{"by aesgcm", `{"aesgcm":` + key + `}`},
		{"by KMS v2", `{"kms":{"apiVersion":"v2","name":"bench","endpoint":"unix://` + socket + `"}}`},
	}
	servers := make([]*server, len(ways))
	for i, way := range ways {
		var flags []string
		if way.provider != "" {
			file := filepath.Join(dir, fmt.Sprint(i, ".json"))
			if err := os.WriteFile(file, []byte(`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration","resources":[{"resources":["secrets"],"providers":[`+way.provider+`]}]}`), 0o600); err != nil {
				return nil, err
			}
			flags = append(flags, "--encryption-provider-config="+file)
		}
		if servers[i], err = startServer(ctx, s, flags...); err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
		defer servers[i].stop()
	}
	rates, cpu := make([][]float64, len(ways)), make([]float64, len(ways))
	for round := range secretRounds {
		for turn := range ways {
			i := (round + turn) % len(ways)
			before := servers[i].api.cpu()
			rate, err := servers[i].load.many(ctx, secretsInRound, 4, func(n int) request {
				return request{method: "POST", path: secretsPath, body: secret(round*secretsInRound + n), want: 201}
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", ways[i].name, err)
			}
			rates[i] = append(rates[i], rate)
			cpu[i] += (servers[i].api.cpu() - before) * 1000 / (secretRounds * secretsInRound)
		}
	}
	var out []figure
	for i, way := range ways {
		out = append(out, figure{"create Secrets " + way.name + ", 4 clients", "/s", middle(rates[i])},
			figure{"  server CPU for each", "ms", cpu[i]})
		if i > 0 {
			times := make([]float64, secretRounds)
			for round := range times {
				times[round] = rates[0][round] / rates[i][round]
			}
			out = append(out, figure{"  time of one, in that of one not encrypted", "x", middle(times)},
				figure{"  CPU of one, in that of one not encrypted", "x", cpu[i] / cpu[0]})
		}
	}
	return out, nil
}

// secret is a Secret of ordinary size.
func secret(i int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s-%d","labels":{"app":"bench"}},"stringData":{"username":"bench","password":"%032d","note":"%0512d"}}`, i, i, i)
}

// middle is the median.
func middle(of []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(of), cmp.Compare[float64])
	return sorted[len(sorted)/2]
}

// keeper is a KMS plug-in that keeps one key in memory.
type keeper struct{ aead cipher.AEAD }

func newKeeper() keeper {
	key := make([]byte, 32)
	rand.Read(key) //nolint:errcheck // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has blocks of 16 bytes
	}
	return keeper{aead}
}

// Status implements service.Service.
func (keeper) Status(context.Context) (*service.StatusResponse, error) {
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: "bench"}, nil
}

// Encrypt implements service.Service.
func (k keeper) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	return &service.EncryptResponse{Ciphertext: k.aead.Seal(nil, nil, data, nil), KeyID: "bench"}, nil
}

// Decrypt implements service.Service.
func (k keeper) Decrypt(_ context.Context, _ string, req *service.DecryptRequest) ([]byte, error) {
	if req.KeyID != "bench" {
		return nil, errors.New("another key")
	}
	return k.aead.Open(nil, nil, req.Ciphertext, nil)
}
