package testenv

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// waitReady waits until every server says that it is ready and the controllers have done what they do in an empty cluster.
func (e *Environment) waitReady(ctx context.Context, ports map[string]int) error {
	root, err := os.ReadFile(e.at("ca.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(root)
	servers := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	config, err := e.Client()
	if err != nil {
		return err
	}
	api, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer api.CloseIdleConnections()
	type step struct {
		client *http.Client
		url    string
	}
	steps := []step{
		{servers, fmt.Sprintf("https://%s:%d/readyz", loopback, ports[apiserverName])},
		{servers, fmt.Sprintf("https://%s:%d/readyz", loopback, ports[schedulerName])},
		{servers, fmt.Sprintf("https://%s:%d/healthz", loopback, ports[controllerManagerName])},
	}
	// What the controllers make in every namespace belongs to the start: a reset to before it would take it away again and again.
	for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		in := config.Host + "/api/v1/namespaces/" + namespace
		steps = append(steps, step{api, in + "/serviceaccounts/default"}, step{api, in + "/configmaps/kube-root-ca.crt"})
	}
	for _, step := range steps {
		if err := e.await(ctx, step.client, step.url); err != nil {
			return err
		}
	}
	return nil
}

// await asks until the answer is 200.
func (e *Environment) await(ctx context.Context, client *http.Client, url string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		problem := ask(ctx, client, url)
		if problem == nil {
			return nil
		}
		if err := e.processes.failed(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), problem)
		case <-tick.C:
		}
	}
}

// ask returns what is wrong with the answer, or nil if it is 200.
func ask(ctx context.Context, client *http.Client, url string) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r, err := client.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, r.Status)
	}
	_, err = io.Copy(io.Discard, r.Body) // or the connection cannot be used again
	return err
}
