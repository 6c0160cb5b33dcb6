package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/supervise"
)

// askTimeout bounds one question to the API server. A user waits for the answer, and a server that takes longer is not well.
const askTimeout = 2 * time.Second

// askAPI asks the API server, by the address that users have, whether it is ready: nil if so, else what is wrong.
func (c Config) askAPI(ctx context.Context) error {
	ca, err := os.ReadFile(c.layout().pki("ca.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}, Timeout: askTimeout}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.LocalServer()+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("the API server does not answer: %w", err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the API server is not ready: %s says %s", req.URL, resp.Status)
	}
	return nil
}

// readyNodes asks the API server which nodes are Ready.
func (c Config) readyNodes(ctx context.Context) (map[string]bool, error) {
	client, err := c.coreClient()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	nodes, err := core.Nodes(client).List(ctx, "", metav1.ListOptions{FieldSelector: c.seenNodes()})
	if err != nil {
		return nil, fmt.Errorf("ask the API server for the nodes: %w", err)
	}
	isReady := map[string]bool{}
	for _, node := range nodes {
		isReady[node.Name] = ready(node)
	}
	return isReady, nil
}

// ready tells whether the API server answers, and all nodes run and are Ready: of a node that died a moment ago the API server
// does not know yet.
func (c Config) ready(ctx context.Context) bool {
	if c.askAPI(ctx) != nil {
		return false
	}
	isReady, err := c.readyNodes(ctx)
	for _, node := range c.Nodes {
		if _, err := supervise.Ask(ctx, c.layout().nodeSocket(node.Name())); err != nil || !isReady[node.Name()] {
			return false
		}
	}
	return err == nil
}
