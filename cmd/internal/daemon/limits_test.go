package daemon

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

type answer func(*http.Request) (*http.Response, error)

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// TestLimits: after the burst, requests of all clients of one configuration together are sent at the rate that was
// asked for; those of another configuration do not wait for them.
func TestLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := &rest.Config{Transport: answer(func(*http.Request) (*http.Response, error) {
			return &http.Response{}, nil
		})}
		send := func(ctx context.Context, configs ...*rest.Config) (time.Duration, error) {
			begin := time.Now()
			for _, c := range configs {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api/", nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.Transport.RoundTrip(r); err != nil {
					return time.Since(begin), err
				}
			}
			return time.Since(begin), nil
		}
		if free := (Limits{Burst: 1}).Apply(base, nil); free != base {
			t.Error("limited without a limit")
		}
		l := Limits{QPS: 2, Burst: 3}
		r := NewMetrics()
		a := l.Apply(base, NewRequests(r))
		if d, err := send(t.Context(), a, rest.CopyConfig(a), a, a, a); err != nil || d != time.Second {
			t.Errorf("five requests, three of them at once: %s, %v", d, err)
		}
		if n := counts(t, r)["rest_client_rate_limiter_duration_seconds api GET"]; n != 5 {
			t.Errorf("%v waits were counted, want 5", n)
		}
		if d, err := send(t.Context(), l.Apply(base, nil), base); err != nil || d != 0 {
			t.Errorf("others: %s, %v", d, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := send(ctx, a); err == nil {
			t.Errorf("a request that may not wait so long: %v", err)
		}
	})
}
