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
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// askTimeout bounds one question to the API server. A user waits for the answer, and a server that takes longer is not well.
const askTimeout = 2 * time.Second

// askAPI asks the API server, by the address that users have, whether it is ready: nil if so, else what is wrong.
func askAPI(ctx context.Context, c plan.Config) error {
	ca, err := os.ReadFile(c.Layout().PKI("ca.crt"))
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
func readyNodes(ctx context.Context, c plan.Config) (map[string]bool, error) {
	client, err := coreClient(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	nodes, err := core.Nodes(client).List(ctx, "", metav1.ListOptions{FieldSelector: plan.SeenNodes(c)})
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
func allReady(ctx context.Context, c plan.Config) bool {
	if askAPI(ctx, c) != nil {
		return false
	}
	isReady, err := readyNodes(ctx, c)
	for _, node := range c.Nodes {
		if _, err := supervise.Ask(ctx, c.Layout().NodeSocket(node.Name())); err != nil || !isReady[node.Name()] {
			return false
		}
	}
	return err == nil
}
