package testenv

import (
	"bytes"
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

// waitReady waits until every server says that it is ready and the controllers have done what they do in an empty
// cluster.
func (e *Environment) waitReady(ctx context.Context, ports map[string]int) error {
	root, err := os.ReadFile(e.at("ca.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(root)
	servers := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true}}
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
		has    string // what the answer contains
	}
	steps := []step{
		{servers, fmt.Sprintf("https://%s:%d/readyz", loopback, ports[apiserverName]), ""},
		{servers, fmt.Sprintf("https://%s:%d/readyz", loopback, ports[schedulerName]), ""},
		{servers, fmt.Sprintf("https://%s:%d/healthz", loopback, ports[controllerManagerName]), ""},
		// What the controllers make and write in an empty cluster belongs to the start: they would do it again after
		// each reset to before it.
		{api, config.Host + "/apis/networking.k8s.io/v1/servicecidrs/kubernetes", "Kubernetes Service CIDR is ready"},
	}
	for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic,
		corev1.NamespaceNodeLease} {
		in := config.Host + "/api/v1/namespaces/" + namespace
		steps = append(steps, step{api, in + "/serviceaccounts/default", ""},
			step{api, in + "/configmaps/kube-root-ca.crt", ""})
	}
	for _, step := range steps {
		if err := e.await(ctx, step.client, step.url, step.has); err != nil {
			return err
		}
	}
	return nil
}

// await asks until the answer is 200 and contains has.
func (e *Environment) await(ctx context.Context, client *http.Client, url, has string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		problem := ask(ctx, client, url, has)
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

// ask returns what is wrong with the answer, or nil if it is 200 and contains has.
func ask(ctx context.Context, client *http.Client, url, has string) error {
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
	answer, err := io.ReadAll(r.Body) // to its end, or the connection cannot be used again
	if err == nil && !bytes.Contains(answer, []byte(has)) {
		err = fmt.Errorf("%s: no %s yet", url, has)
	}
	return err
}
