package join

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestNodeAddress: --node-ip takes addresses of this machine only, as the kubelet's --node-ip does.
func TestNodeAddress(t *testing.T) {
	t.Parallel()
	server := netip.MustParseAddrPort("127.0.0.1:6443")
	loopback := netip.MustParseAddr("127.0.0.1")
	for _, asked := range []netip.Addr{{}, loopback} {
		if got, err := nodeAddress(asked, server); got != loopback || err != nil {
			t.Errorf("%v: %v, %v", asked, got, err)
		}
	}
	_, err := nodeAddress(netip.MustParseAddr("192.0.2.200"), server)
	if err == nil || !strings.Contains(err.Error(), "--node-ip: 192.0.2.200 is no address of this machine") {
		t.Error(err)
	}
}

// TestWaitExpired: a machine whose certificate has expired says how it joins again, in an order that works. Join
// refuses while the node runs, and it does run: the start that waits has started it.
func TestWaitExpired(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	c.Joined = &plan.Joined{}
	synctest.Test(t, func(t *testing.T) {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(-time.Hour)}
		der, err := x509.CreateCertificate(rand.Reader, &template, &template, public, private)
		if err != nil {
			t.Fatal(err)
		}
		expired := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		for path, raw := range map[string][]byte{
			c.Layout().PKI("kubelet-client-current.pem"): expired,
			c.Layout().Kubeconfig(c.Identity()):          nil} {
			if err := host.WriteFile(path, raw); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = Wait(ctx, c)
		if err == nil {
			t.Fatal("no error")
		}
		rest := err.Error()
		for _, step := range []string{"bonsai token create --print-join-command", "bonsai stop", "the printed command",
			"kubectl certificate approve"} {
			_, after, ok := strings.Cut(rest, step)
			if !ok {
				t.Fatalf("no %q, or too early, in %q", step, err)
			}
			rest = after
		}
	})
}
