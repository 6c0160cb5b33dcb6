package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestFlagsThatHold: flags that only choose a time reach what uses them; upstream's defaults hold without them.
func TestFlagsThatHold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args                  []string
		notReady, unreachable int64
		ready                 time.Duration
	}{
		{nil, 300, 300, 2 * time.Second},
		{[]string{"--default-not-ready-toleration-seconds=7", "--default-unreachable-toleration-seconds=0",
			"--etcd-readycheck-timeout=5s"}, 7, 0, 5 * time.Second},
	} {
		o, fs := defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(fs)
		if err := fs.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if err := o.complete(); err != nil {
			t.Fatal(err)
		}
		if *o.parts.NotReadySeconds != c.notReady || *o.parts.UnreachableSeconds != c.unreachable ||
			o.etcdReadyTimeout != c.ready {
			t.Errorf("%q: %d, %d, %v", c.args, *o.parts.NotReadySeconds, *o.parts.UnreachableSeconds,
				o.etcdReadyTimeout)
		}
	}
}

// TestLocalNetworks: a server that is to spare other network namespaces does not start where it cannot look into them.
func TestLocalNetworks(t *testing.T) {
	own := "/proc/self/ns/net"
	for value, want := range map[string][]string{"": {}, own: {own}, own + ":" + own: {own, own}} {
		t.Setenv("BONSAI_LOCAL_NETWORKS", value)
		o := defaults()
		if err := o.localNetworks(); err != nil || !slices.Equal(o.parts.LocalNetworks, want) ||
			!slices.Equal(o.aggregation.LocalNetworks, want) {
			t.Errorf("%q: %q and %q, %v", value, o.parts.LocalNetworks, o.aggregation.LocalNetworks, err)
		}
	}
	t.Setenv("BONSAI_LOCAL_NETWORKS", own+":/none")
	o := defaults()
	if err := o.complete(); err == nil ||
		!strings.Contains(err.Error(), "BONSAI_LOCAL_NETWORKS: list the addresses in the network namespace /none") {
		t.Errorf("a namespace that is not there: %v", err)
	}
}

// TestExternalHostname: the OpenID configuration names the keys at the external host, with the secure port where the
// flag names none, unless --service-account-jwks-uri names them.
func TestExternalHostname(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""}, // at the address of --advertise-address
		{[]string{"--external-hostname=api.example.org"}, "https://api.example.org:6443/openid/v1/jwks"},
		{[]string{"--external-hostname=api.example.org", "--secure-port=7443"},
			"https://api.example.org:7443/openid/v1/jwks"},
		{[]string{"--external-hostname=api.example.org:443"}, "https://api.example.org:443/openid/v1/jwks"},
		{[]string{"--external-hostname=fd00::1"}, "https://[fd00::1]:6443/openid/v1/jwks"},
		{[]string{"--external-hostname=api.example.org", "--service-account-jwks-uri=https://keys.example.org/jwks"},
			"https://keys.example.org/jwks"},
	} {
		o, fs := defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(fs)
		if err := fs.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if err := o.complete(); err != nil {
			t.Fatal(err)
		}
		if got := o.parts.Authentication.JWKSURI; got != c.want {
			t.Errorf("%q: the keys are at %q, want %q", c.args, got, c.want)
		}
	}
}
