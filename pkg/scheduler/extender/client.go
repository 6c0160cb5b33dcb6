package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

const (
	// defaultTimeout bounds a call where the configuration does not.
	defaultTimeout = 5 * time.Second
	// maxAnswer bounds what an extender may answer: it may name, or send back, every node.
	maxAnswer = 64 << 20
)

// client sends JSON to one extender.
type client struct {
	prefix string
	http   *http.Client
}

// newClient reads the certificates that the configuration names.
func newClient(c *configv1.Extender) (*client, error) {
	config := &rest.Config{Timeout: c.HTTPTimeout.Duration}
	if config.Timeout <= 0 {
		config.Timeout = defaultTimeout
	}
	if t := c.TLSConfig; t != nil {
		config.TLSClientConfig = rest.TLSClientConfig{Insecure: t.Insecure, ServerName: t.ServerName,
			CertFile: t.CertFile, KeyFile: t.KeyFile, CAFile: t.CAFile, CertData: t.CertData, KeyData: t.KeyData,
			CAData: t.CAData}
	} else if c.EnableHTTPS {
		config.TLSClientConfig.Insecure = true // as upstream: only a tlsConfig says whose certificate to trust
	}
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	// What is sent, pods and nodes, is for the configured address alone.
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{prefix: strings.TrimRight(c.URLPrefix, "/") + "/", http: h}, nil
}

// call posts args and reads the answer. The body of an answer that is no success is not shown: it may be of any length.
func (c *client) call(ctx context.Context, verb string, args, answer any) error {
	body, err := json.Marshal(args)
	if err != nil {
		return err
	}
	url := c.prefix + verb
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("failed %v with extender at URL %v, code %v", verb, url, resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	if len(data) > maxAnswer {
		return fmt.Errorf("%s: the answer is longer than %d bytes", url, maxAnswer)
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}
