package balancer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// Readyz returns a Check that asks API servers for /readyz. Their certificates must be of one of the authorities in ca
// (PEM). The balancer has no identity in the cluster: an API server that lets nobody in without credentials (401)
// counts as ready, since it answers.
func Readyz(ca []byte) (func(ctx context.Context, backend string) error, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("no certificate of an authority in the file")
	}
	// A connection of its own for each question reports whether new ones are taken.
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	return func(ctx context.Context, backend string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+backend+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusUnauthorized {
			return fmt.Errorf("/readyz says %s", resp.Status)
		}
		return nil
	}, nil
}
