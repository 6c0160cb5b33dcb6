package apiserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/apiserver/inflight"
)

// TestEnds: what must give way ends at once, whatever it waits for: a body that does not come, an answer that is not
// read, a stream that has nothing to say, on both versions of HTTP.
func TestEnds(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(w http.ResponseWriter, r *http.Request){
		"a body": func(_ http.ResponseWriter, r *http.Request) {
			for b := make([]byte, 1); ; {
				if _, err := r.Body.Read(b); err != nil {
					return
				}
			}
		},
		"an answer": func(w http.ResponseWriter, _ *http.Request) {
			for b := make([]byte, 1<<20); ; {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		},
		"a silent stream": func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				shares := inflight.NewShares(2, 2, 0)
				begun, over := make(chan struct{}, 3), make(chan struct{}, 3)
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					held := shares.Hold(inflight.Others, r.Header.Get("Caller"), ends(w))
					defer held.Give()
					if !held.Take(1) {
						w.WriteHeader(http.StatusTooManyRequests)
						return
					}
					begun <- struct{}{}
					if r.Header.Get("Caller") == "many" {
						wait(w, r)
						over <- struct{}{}
					}
				}))
				server.EnableHTTP2 = http2
				server.StartTLS()
				defer server.Close()
				ask := func(method, caller string, body *half) (*http.Response, error) {
					r, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
					if err != nil {
						return nil, err
					}
					if body != nil {
						r.Body = body
					}
					r.Header.Set("Caller", caller)
					return server.Client().Do(r)
				}
				never := make(chan struct{})
				for range 2 {
					go func() {
						body, method := (*half)(nil), http.MethodGet
						if strings.HasSuffix(name, "body") {
							body, method = &half{until: never}, http.MethodPost
						}
						if resp, err := ask(method, "many", body); err == nil {
							<-never // nothing is read
							resp.Body.Close()
						}
					}()
					<-begun
				}
				defer close(never)
				resp, err := ask(http.MethodGet, "one", nil)
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Fatalf("%v, %v", resp, err)
				}
				resp.Body.Close()
				select {
				case <-over:
				case <-time.After(10 * time.Second):
					t.Fatal("nothing ended")
				}
			})
		}
	}
}

// half is a body of which one byte comes.
type half struct {
	until <-chan struct{}
	once  bool
}

func (h *half) Read(p []byte) (int, error) {
	if !h.once {
		h.once = true
		return copy(p, "{"), nil
	}
	<-h.until
	return 0, http.ErrBodyReadAfterClose
}

func (h *half) Close() error { return nil }
