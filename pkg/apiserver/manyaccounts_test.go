package apiserver_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/authz"
)

// everybody may do everything.
type everybody struct{}

func (everybody) Authorize(context.Context, authz.Attributes) (authz.Decision, string, error) {
	return authz.Allow, "", nil
}

// half is a body of which one byte comes, and the rest when ctx ends.
type half struct {
	ctx  context.Context
	sent *atomic.Int64
	once bool
}

func (h *half) Read(p []byte) (int, error) {
	if !h.once {
		h.once = true
		return copy(p, "{"), nil
	}
	h.sent.Add(1)
	<-h.ctx.Done()
	return 0, io.ErrUnexpectedEOF
}

// TestHalfBodiesOfManyAccounts: service accounts of four namespaces hold as many half bodies as the server takes, on
// few connections; everybody else writes as if they were not there.
func TestHalfBodiesOfManyAccounts(t *testing.T) {
	t.Parallel()
	host := start(t, func(c *assemble.Config) { c.Parts.Authorizer = everybody{} })
	// One connection a client: thousands that are dialed at once are another attack (connlimit.Untrusted).
	newClient := func() *http.Client {
		return &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, MaxConnsPerHost: 1,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	}
	others := newClient()
	var attackers [27]*http.Client
	for i := range attackers {
		attackers[i] = newClient()
	}
	post := func(ctx context.Context, client *http.Client, user string, body io.Reader) (int, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, host+maps, body)
		if err != nil {
			return 0, err
		}
		r.Header.Set("Test-User", user)
		r.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	var attack sync.WaitGroup
	defer attack.Wait()
	defer cancel()
	const namespaces, each = 4, 1024
	var sent atomic.Int64
	// The attackers run in this process: without a bound they would take the processor from the server, which is
	// another attack.
	pace := rate.NewLimiter(2000, 100)
	for i := range namespaces * each {
		attack.Go(func() {
			for pace.Wait(ctx) == nil { // one that was ended comes again
				_, _ = post(ctx, attackers[i%len(attackers)],
					fmt.Sprintf("system:serviceaccount:team%d:a%d", i%namespaces, i),
					&half{ctx: ctx, sent: &sent})
			}
		})
	}
	for limit := time.Now().Add(30 * time.Second); sent.Load() < namespaces*each && time.Now().Before(limit); {
		if code, err := post(ctx, others, "alice", strings.NewReader(`{}`)); err != nil ||
			code == http.StatusTooManyRequests {
			t.Fatalf("while the half bodies come: %d, %v", code, err)
		}
	}
	for i := range 20 {
		began := time.Now()
		code, err := post(ctx, others, "alice", strings.NewReader(fmt.Sprintf(`{"metadata":{"name":"m%d"}}`, i)))
		// under a second on a machine with nothing else to do
		if took := time.Since(began); err != nil || code != http.StatusCreated || took > 10*time.Second {
			t.Errorf("alice's write: %d, %v, %v", code, err, took)
		}
	}
}
