package cluster

import (
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/cluster/supervise"
)

// TestServeDNSWithoutAddon: the error names the command that helps. Add-ons change while a cluster runs, so it does not
// send the user to stop it first.
func TestServeDNSWithoutAddon(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	c.AddonChoices = map[string]bool{plan.DNSAddon: false}
	if err := errors.Join(datadir.Save(c), os.MkdirAll(c.Layout().Run(), 0o700)); err != nil {
		t.Fatal(err)
	}
	go supervise.Serve(t.Context(), c.Layout().Socket("supervisor"), func() supervise.Status {
		return supervise.Status{}
	}, nil)
	if err := host.Poll(t.Context(), time.Millisecond, func() (bool, error) {
		return running(t.Context(), c), nil
	}); err != nil {
		t.Fatal(err)
	}
	err := ServeDNS(t.Context(), c.DataDir, netip.MustParseAddrPort("127.0.0.1:0"), io.Discard,
		slog.New(slog.DiscardHandler))
	if err == nil || !strings.HasSuffix(err.Error(), "has no DNS (bonsai up --addons coredns)") {
		t.Error(err)
	}
}
