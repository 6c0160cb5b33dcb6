package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// transportChunk is how much the bare server hands to net/http at once, in bytes, as the API server does for a list.
const transportChunk = 64 << 10

// serveBytes answers each request with size bytes from memory, by HTTPS as the API server is served: what is left of an
// answer's cost if nothing of it had to be found, encoded or allowed. It is a process of its own, so that its CPU can
// be told from the load's.
func serveBytes(addr string, size int) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	body := make([]byte, size)
	server := &http.Server{
		Addr:      addr,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for rest := body; len(rest) > 0; {
				n, err := w.Write(rest[:min(transportChunk, len(rest))])
				if err != nil {
					return
				}
				rest = rest[n:]
			}
		}),
	}
	return server.ListenAndServeTLS("", "")
}

// transport measures serveBytes under the same load: how many answers as long as r's it gives a second, and the CPU of
// each in milliseconds.
func (s *server) transport(ctx context.Context, n, clients int, r request) (rate, ms float64, err error) {
	size, err := s.load.size(ctx, r)
	if err != nil {
		return 0, 0, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return 0, 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	bare, err := start(ctx, filepath.Join(s.dir, "transport.log"), self, "-serve", "127.0.0.1:"+ports[0], "-size",
		strconv.FormatInt(size, 10))
	if err != nil {
		return 0, 0, err
	}
	defer bare.stop()
	l := newLoad("https://127.0.0.1:"+ports[0], "")
	r.want = http.StatusOK
	if err := l.until(ctx, 10*time.Millisecond, r); err != nil {
		return 0, 0, fmt.Errorf("%w: %s", err, bare.tail())
	}
	before := bare.cpu()
	if rate, err = l.many(ctx, n, clients, func(int) request { return r }); err != nil {
		return 0, 0, err
	}
	return rate, (bare.cpu() - before) * 1000 / float64(n), nil
}
