package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"bonsai/pkg/safetext"
)

// Bounds on what is fetched from an issuer.
const (
	fetchTimeout = 10 * time.Second
	maxDocument  = 1 << 20 // bytes
	maxRedirects = 5
)

// dialer opens connections, as net.Dialer's DialContext does.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// fetcher gets a document. It takes at most fetchTimeout.
type fetcher func(ctx context.Context, url string) ([]byte, error)

// newFetcher returns a fetcher that believes the authorities of a PEM bundle; "": those of the machine. dial opens its
// connections through a proxy; nil: they are direct.
func newFetcher(authorities string, dial dialer) (fetcher, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(authorities)) {
			return nil, errors.New("data does not contain any valid RSA or ECDSA certificates")
		}
	}
	client := &http.Client{
		Timeout: fetchTimeout,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSClientConfig: config,
			TLSHandshakeTimeout: fetchTimeout, MaxIdleConnsPerHost: 1, IdleConnTimeout: 30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Scheme != "https" {
				return fmt.Errorf("it redirects to %s, which is not https", r.URL.Redacted())
			}
			if len(via) >= maxRedirects {
				return fmt.Errorf("it redirects more than %d times", maxRedirects)
			}
			return nil
		},
	}
	return func(ctx context.Context, from string) ([]byte, error) { return get(ctx, client, from) }, nil
}

func get(ctx context.Context, client *http.Client, from string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return nil, safetext.Error(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", safetext.URL(from), safetext.Text(answer.Status))
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", safetext.URL(from), err)
	}
	if len(body) > maxDocument {
		return nil, fmt.Errorf("GET %s: the answer has more than %d bytes", safetext.URL(from), maxDocument)
	}
	return body, nil
}

// discover returns where the keys of an issuer are.
func discover(ctx context.Context, fetch fetcher, i *Issuer) (string, error) {
	body, err := fetch(ctx, i.discovery())
	if err != nil {
		return "", err
	}
	var provider struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(body, &provider); err != nil {
		return "", fmt.Errorf("%s: it is no OpenID configuration: %w", i.discovery(),
			safetext.Error(err))
	}
	if provider.Issuer != i.URL {
		return "", fmt.Errorf("oidc: issuer URL provided to client (%q) did not match the issuer URL returned by provider (%q)",
			i.URL, safetext.Text(provider.Issuer))
	}
	if keys, err := url.Parse(provider.JWKSURI); err != nil || keys.Scheme != "https" || keys.Host == "" {
		return "", fmt.Errorf("%s: jwks_uri %q is no https URL", i.discovery(),
			safetext.Text(safetext.URL(provider.JWKSURI)))
	}
	return provider.JWKSURI, nil
}
