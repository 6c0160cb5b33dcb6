package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// namespace is where the load's objects live; pods is their path.
const (
	namespace = "bench"
	podsPath  = "/api/v1/namespaces/" + namespace + "/pods"
)

// load sends requests to one API server.
type load struct {
	server, token string
	client        *http.Client
}

func newLoad(server, token string) *load {
	return &load{server: server, token: token, client: &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // a certificate of its own making, on loopback
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64, DisableCompression: true,
	}}}
}

// request is one call; accept and contentType default to JSON.
type request struct {
	method, path        string
	body                []byte
	accept, contentType string
	want                int
}

// kubeconfig is a file's content with the address and the token of l.
func (l *load) kubeconfig() []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":{"token":%q}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`, l.server, l.token)
}

func (l *load) open(ctx context.Context, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, l.server+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+l.token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	return l.client.Do(req)
}

// do reads and forgets the answer; another code than r.want is an error.
func (l *load) do(ctx context.Context, r request) error {
	_, err := l.size(ctx, r)
	return err
}

// size is do, and returns the length of the answer in bytes.
func (l *load) size(ctx context.Context, r request) (int64, error) {
	resp, err := l.open(ctx, r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil {
		return 0, err
	}
	if resp.StatusCode != r.want {
		return 0, fmt.Errorf("%s %s: HTTP %d, not %d", r.method, r.path, resp.StatusCode, r.want)
	}
	return n, nil
}

// until sends a request at such intervals until it is answered as it wants, for half a minute of waiting.
func (l *load) until(ctx context.Context, every time.Duration, r request) (err error) {
	for range 30 * time.Second / every {
		if err = l.do(ctx, r); err == nil {
			return nil
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// namespace makes the namespace and its service account.
func (l *load) namespace(ctx context.Context) error {
	if err := l.do(ctx, request{method: "POST", path: "/api/v1/namespaces",
		body: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + namespace + `"}}`),
		want: 201}); err != nil {
		return err
	}
	return l.do(ctx, request{method: "POST", path: "/api/v1/namespaces/" + namespace + "/serviceaccounts",
		body: []byte(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}`), want: 201})
}

// many makes n requests by c clients and returns how many a second it was.
func (l *load) many(ctx context.Context, n, c int, make func(i int) request) (float64, error) {
	var next, failed atomic.Int64
	var first atomic.Pointer[error]
	var wg sync.WaitGroup
	began := time.Now()
	for range c {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := l.do(ctx, make(int(i))); err != nil {
					failed.Add(1)
					first.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wg.Wait()
	if failed.Load() > 0 {
		return 0, fmt.Errorf("%d of %d requests failed: %w", failed.Load(), n, *first.Load())
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// watchAll opens watchers, makes n changes and returns how many events a second all watchers together received.
func (l *load) watchAll(ctx context.Context, watchers, n int, change func(i int) request) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var seen sync.WaitGroup
	for range watchers {
		resp, err := l.open(ctx, request{method: "GET", path: podsPath + "?watch=1&resourceVersion=" + l.version(ctx)})
		if err != nil {
			return 0, err
		}
		seen.Go(func() {
			defer resp.Body.Close()
			lines := bufio.NewReaderSize(resp.Body, 64<<10)
			for got := 0; got < n; {
				_, err := lines.ReadSlice('\n')
				if errors.Is(err, bufio.ErrBufferFull) {
					continue
				}
				if err != nil {
					return
				}
				got++
			}
		})
	}
	began := time.Now()
	if _, err := l.many(ctx, n, 8, change); err != nil {
		return 0, err
	}
	seen.Wait()
	return float64(watchers*n) / time.Since(began).Seconds(), ctx.Err()
}

// version returns the newest resourceVersion, from a list of one.
func (l *load) version(ctx context.Context) string {
	resp, err := l.open(ctx, request{method: "GET", path: podsPath + "?limit=1"})
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	head, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return ""
	}
	_, rest, _ := bytes.Cut(head, []byte(`"resourceVersion":"`))
	version, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(version)
}

// pod is a pod of ordinary size, as a Deployment would make it; more is added to its spec.
func pod(i int, more string) []byte { return podNamed("p", i, "a pod of an ordinary size", more) }

// podNamed is a pod with another name, PREFIX-i, and another note.
func podNamed(prefix string, i int, note, more string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s-%d","labels":{"app":"bench","group":"g%d"},"annotations":{"note":"%s"}},"spec":{"containers":[{"name":"app","image":"example.org/app:1.0","resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},"env":[{"name":"A","value":"1"},{"name":"POD_NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],"ports":[{"containerPort":8080,"name":"http"}],"readinessProbe":{"httpGet":{"path":"/healthz","port":"http"}}}],"tolerations":[{"key":"x","operator":"Exists"}]%s}}`, prefix, i, i%7, note, more)
}

// follow gives f the events of a watch from the beginning until it returns true. A server may end a watch: it is opened
// again.
func (l *load) follow(ctx context.Context, path string, f func(event []byte) bool) error {
	for {
		resp, err := l.open(ctx, request{method: "GET", path: path + "?watch=1&resourceVersion=0"})
		if err != nil {
			return err
		}
		done := false
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(make([]byte, 1<<20), 1<<22)
		for !done && lines.Scan() {
			done = f(lines.Bytes())
		}
		resp.Body.Close()
		if done {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// none waits until there is no object below path, for a minute.
func (l *load) none(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		resp, err := l.open(ctx, request{method: "GET", path: path + "?limit=1"})
		if err != nil {
			return fmt.Errorf("until %s is empty: %w", path, err)
		}
		head, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		resp.Body.Close()
		if err != nil {
			return err
		}
		if bytes.Contains(head, []byte(`"items":[]`)) {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s does not become empty: %w", path, ctx.Err())
		}
	}
}
