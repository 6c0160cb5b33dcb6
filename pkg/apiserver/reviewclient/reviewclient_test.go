package reviewclient

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func client(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	return clientBy(t, h, nil)
}

func clientBy(t *testing.T, h http.HandlerFunc, dial func(context.Context, string, string) (net.Conn, error)) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: w}}]\n" +
		"clusters: [{name: w, cluster: {server: '" + s.URL + "/review'}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{File: file, Timeout: time.Minute, FirstWait: time.Millisecond, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTries: a webhook is asked again after the failures after which a real kube-apiserver v1.36.3 asks again, and no
// more than five times.
func TestTries(t *testing.T) {
	t.Parallel()
	var asked, failures, code atomic.Int32
	c := client(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > failures.Load() {
			return
		}
		if n := int(code.Load()); n > 0 {
			w.WriteHeader(n)
			return
		}
		panic(http.ErrAbortHandler)
	})
	for _, tt := range []struct {
		code, failures, asked int32
		ok                    bool
	}{{500, 0, 1, true}, {500, 4, 5, true}, {500, 5, 5, false}, {502, 9, 5, false}, {504, 9, 5, false},
		{429, 9, 5, false}, {400, 1, 1, false}, {401, 1, 1, false}, {403, 1, 1, false}, {404, 1, 1, false},
		{503, 1, 1, false}, {307, 1, 1, false}, {0, 1, 1, false}} {
		asked.Store(0)
		failures.Store(tt.failures)
		code.Store(tt.code)
		_, err := c.Post(t.Context(), []byte("{}"))
		if (err == nil) != tt.ok || asked.Load() != tt.asked {
			t.Errorf("%d, %d failures: %v, asked %d times", tt.code, tt.failures, err, asked.Load())
		}
		if err != nil && tt.code > 0 && !strings.Contains(err.Error(), strconv.Itoa(int(tt.code))) {
			t.Errorf("%d: %v", tt.code, err)
		}
	}
}

// TestNoPasswords: whatever is wrong with the URLs of a kubeconfig, no error shows their passwords.
func TestNoPasswords(t *testing.T) {
	t.Parallel()
	for _, cluster := range []string{
		"server: 'http://u:secret@h:port'",
		"server: 'http://u:sec/secret@h:1'",
		"server: 'http://u:%secret@h'",
		"server: 'http://127.0.0.1:1', proxy-url: 'http://u:secret@h:port'",
		"server: 'http://127.0.0.1:1', proxy-url: 'http://u:%secret@h'",
		"server: 'http://127.0.0.1:1', proxy-url: 'ftp://u:secret@h'",
	} {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: w}}]\n" +
			"clusters: [{name: w, cluster: {" + cluster + "}}]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := New(Config{File: file, Timeout: time.Second, FirstWait: time.Millisecond})
		if err == nil {
			_, err = c.Post(t.Context(), []byte("{}"))
		}
		if err == nil || strings.Contains(err.Error(), "sec") {
			t.Errorf("%s: %v", cluster, err)
		}
	}
}

// TestHostileWords: no error repeats more than a few words of a webhook, nor control characters.
func TestHostileWords(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x\x1b[2J", 1<<16)
	for name, says := range map[string]string{
		"status": "HTTP/1.1 403 " + long + "\r\nContent-Length: 0\r\n\r\n",
		"header": "HTTP/1.1 200 OK\r\n" + long + "\r\n\r\n",
		"none":   long + "\r\n\r\n",
		"length": "HTTP/1.1 200 OK\r\nContent-Length: " + long + "\r\n\r\n",
	} {
		c := client(t, func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(conn, says)
			_ = conn.Close()
		})
		_, err := c.Post(t.Context(), []byte("{}"))
		if err == nil || len(err.Error()) > 1100 || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: got %.2000q", name, err)
		}
	}
}

// TestHuge: an answer is read up to a bound.
func TestHuge(t *testing.T) {
	t.Parallel()
	c := client(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Repeat(" ", maxAnswer+1)))
	})
	if _, err := c.Post(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%v", err)
	}
}

// TestSlow: a webhook that does not answer holds a bounded number of requests, each for its own time.
func TestSlow(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	var asked atomic.Int32
	c := client(t, func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(end) }) // before the server waits for its requests
	c.turns, c.waiting = make(chan struct{}, 2), make(chan struct{}, 4)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for range 4 {
		go func() {
			_, err := c.Post(ctx, nil)
			ended <- err
		}()
	}
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return len(c.waiting) == 4 && asked.Load() == 2, nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Post(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("one request too many: %v", err)
	}
	cancel()
	for range 4 {
		if err := <-ended; err == nil {
			t.Error("a review without an answer is no error")
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times", n)
	}
	if len(c.turns) != 0 || len(c.waiting) != 0 {
		t.Error("a turn is lost")
	}
}

// TestDial: with a Dial, nothing is connected to in another way.
func TestDial(t *testing.T) {
	t.Parallel()
	var dialed atomic.Int32
	c := clientBy(t, func(http.ResponseWriter, *http.Request) {},
		func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialed.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		})
	if _, err := c.Post(t.Context(), []byte("{}")); err != nil || dialed.Load() != 1 {
		t.Errorf("%d connections, %v", dialed.Load(), err)
	}
}
