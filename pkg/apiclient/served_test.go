package apiclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// come and go is a server, in this process, whose nodes are served or not.
type comeAndGo struct {
	mu     sync.Mutex
	served bool
	down   int // requests that nobody answers
	asked  int
	end    chan struct{} // of the watches
}

func (s *comeAndGo) set(served bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served = served
	close(s.end)
	s.end = make(chan struct{})
}

// RoundTrip implements http.RoundTripper.
func (s *comeAndGo) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	answer := func(code int, body io.ReadCloser) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: body,
			Request: r}, nil
	}
	if s.down > 0 {
		s.down--
		return nil, errors.New("connection refused")
	}
	if !s.served {
		return answer(http.StatusNotFound, io.NopCloser(strings.NewReader("404 page not found")))
	}
	if r.URL.Query().Get("watch") != "" {
		body, w := io.Pipe()
		end, gone := s.end, r.Context().Done()
		go func() {
			select {
			case <-end:
			case <-gone:
			}
			_ = w.Close()
		}()
		return answer(http.StatusOK, body)
	}
	list, err := json.Marshal(
		corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			Items:    []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}}}})
	if err != nil {
		return nil, err
	}
	return answer(http.StatusOK, io.NopCloser(bytes.NewReader(list)))
}

// TestInformerOfWhatIsNotServed: as long as the server does not serve the resource an informer is in sync and empty,
// and asks about once a minute; it fills when the resource comes, and empties when it goes. Nothing of it is an error.
func TestInformerOfWhatIsNotServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &comeAndGo{end: make(chan struct{})}
		var log bytes.Buffer
		m := NewInformer(nodes(clientOf(t, &rest.Config{Host: "http://server", Transport: s})), Selection{},
			slog.New(slog.NewTextHandler(&log, nil)))
		m.Optional = true
		done := make(chan struct{})
		go func() { defer close(done); m.Run(t.Context()) }()
		after := func(d time.Duration, want int) (asked int) {
			t.Helper()
			s.mu.Lock()
			s.asked = 0
			s.mu.Unlock()
			time.Sleep(d)
			synctest.Wait()
			if !m.Synced() || m.Len() != want {
				t.Errorf("in sync %v with %d objects, want %d", m.Synced(), m.Len(), want)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.asked
		}
		after(0, 0)
		if n := after(time.Hour, 0); n < 50 || n > 70 {
			t.Errorf("asked %d times in an hour without the resource", n)
		}
		s.set(true)
		after(2*time.Minute, 1)
		s.set(false)
		if n := after(5*time.Minute, 0); n > 20 {
			t.Errorf("asked %d times in five minutes after the resource went", n)
		}
		s.set(true)
		after(2*time.Minute, 1)
		if log.Len() > 0 {
			t.Errorf("complains of what is not served:\n%s", log.String())
		}
	})
}

// TestInSyncWhenTheServerSaysNo: a server that does not answer at first says with its first answer that there is no
// such resource.
func TestInSyncWhenTheServerSaysNo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &comeAndGo{end: make(chan struct{}), down: 1}
		m := NewInformer(nodes(clientOf(t, &rest.Config{Host: "http://server", Transport: s})), Selection{},
			slog.New(slog.DiscardHandler))
		m.Optional = true
		go m.Run(t.Context())
		synctest.Wait()
		if s.asked != 2 || !m.Synced() {
			t.Errorf("in sync %v after %d questions", m.Synced(), s.asked)
		}
	})
}
