package host

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatience: a wait ends when nothing has progressed for so long, however long it has taken; what comes and goes
// is progress once.
func TestPatience(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		milestones []string // one a minute
		want       time.Duration
	}{
		"nothing happens": {nil, 5 * time.Minute},
		"a slow machine": {[]string{"etcd runs", "node n1", "node n1 is Ready", "pod coredns Ready"},
			9 * time.Minute},
		"a component that ends": {[]string{"n1-kubelet runs", "n1-kubelet runs", "n1-kubelet runs", "n1-kubelet runs"},
			6 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ctx, cancel := WithPatience(t.Context(), 5*time.Minute)
			defer cancel()
			for _, m := range test.milestones {
				time.Sleep(time.Minute)
				Progressed(ctx, m)
			}
			<-ctx.Done()
			if took := time.Since(began); took != test.want {
				t.Errorf("%s: ends after %s", name, took)
			}
			if cause := context.Cause(ctx); !strings.Contains(cause.Error(), "no progress for 5m0s (--wait)") {
				t.Errorf("%s: %v", name, cause)
			}
			if Progressed(ctx, "too late"); ctx.Err() == nil {
				t.Errorf("%s: goes on", name)
			}
		})
	}
	Progressed(t.Context(), "without patience") // is no matter
}
