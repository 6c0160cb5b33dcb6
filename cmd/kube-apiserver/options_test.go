package main

import (
	"fmt"
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

// TestAdvertised: an address that no endpoint can have is refused, unless the server keeps no endpoints. The errors are
// those of a real kube-apiserver v1.37.2.
func TestAdvertised(t *testing.T) {
	t.Parallel()
	const refused = "cannot use public IP"
	for _, c := range []struct{ address, reconciler, want string }{
		{"127.0.0.1", "lease", "loopback range (127.0.0.0/8, ::1/128)"},
		{"::1", "lease", "loopback range (127.0.0.0/8, ::1/128)"},
		{"169.254.1.1", "lease", "link-local range (169.254.0.0/16, fe80::/10)"},
		{"224.0.0.1", "lease", "link-local multicast range (224.0.0.0/24, ff02::/10)"},
		{"127.0.0.1", "none", ""},
		{"192.0.2.1", "lease", ""},
		{"0.0.0.0", "lease", ""}, // the host's own
	} {
		o, fs := defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(fs)
		if err := fs.Parse([]string{"--advertise-address=" + c.address,
			"--endpoint-reconciler-type=" + c.reconciler}); err != nil {
			t.Fatal(err)
		}
		got, want := fmt.Sprint(o.validate()), "" // other required flags are missing, too
		if c.want != "" {
			want = fmt.Sprintf(refused+" %s with endpoint reconciler: <nil>: Invalid value: %q: may not be in the %s",
				c.address, c.address, c.want)
		}
		if !strings.Contains(got, want) || want == "" && strings.Contains(got, refused) {
			t.Errorf("%s, %s: %s, want %q", c.address, c.reconciler, got, want)
		}
	}
	// Without the flag, the bound address is advertised. One on loopback is not published.
	for bound, want := range map[string]bool{"169.254.1.1": true, "127.0.0.1": false, "192.0.2.1": false} {
		o, fs := defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(fs)
		if err := fs.Parse([]string{"--bind-address=" + bound}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(fmt.Sprint(o.validate()), refused); got != want {
			t.Errorf("bound to %s: refused %t", bound, got)
		}
	}
}

// TestServingFlags: the errors are those of a real kube-apiserver v1.36.3.
func TestServingFlags(t *testing.T) {
	t.Parallel()
	const transport = "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information"
	for arg, want := range map[string]string{
		"--cors-allowed-origins=example.com":                       "--cors-allowed-origins has an invalid regular expression: regular expression does not pin to start/end of host in the origin header, help: List of allowed origins for CORS, ",
		"--cors-allowed-origins=^//a$,^b,c$":                       "does not pin",
		"--cors-allowed-origins=[":                                 "--cors-allowed-origins has an invalid regular expression: error parsing regexp: missing closing ]: `[`, help: ",
		"--strict-transport-security-directives=foo":               transport,
		"--strict-transport-security-directives=off":               transport,
		"--strict-transport-security-directives=max-age=":          transport,
		"--strict-transport-security-directives=preload=1":         transport,
		"--goaway-chance=0.03":                                     "--goaway-chance can not be less than 0 or greater than 0.02",
		"--shutdown-delay-duration=-1s":                            "--shutdown-delay-duration can not be negative value",
		"--shutdown-watch-termination-grace-period=-1s":            "shutdown-watch-termination-grace-period, if provided, can not be a negative value",
		"--livez-grace-period=-1s":                                 "--livez-grace-period can not be a negative value",
		"--min-request-timeout=-1":                                 "--min-request-timeout can not be negative value",
		"--strict-transport-security-directives=max-age=5,preload": "",
		"--cors-allowed-origins=//a:":                              "",
	} {
		o, fs := defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(fs)
		if err := fs.Parse([]string{arg, "--etcd-servers=http://127.0.0.1:1", "--service-account-issuer=https://a",
			"--service-account-signing-key-file=x"}); err != nil {
			t.Fatal(err)
		}
		if err := o.validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}

// TestSigningFlags: service account tokens are signed by a key of this process or by another process, and nobody says
// both.
func TestSigningFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                                      "--service-account-signing-key-file is a required flag, unless --service-account-signing-endpoint is given",
		"--service-account-signing-endpoint=/s": "",
		"--service-account-signing-key-file=/k --service-account-key-file=/p":         "",
		"--service-account-signing-endpoint=/s --service-account-signing-key-file=/k": "mutually exclusive",
		"--service-account-signing-endpoint=/s --service-account-key-file=/p":         "mutually exclusive",
	} {
		o, fs := defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(fs)
		if err := fs.Parse(append(strings.Fields(args), "--service-account-issuer=https://x")); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := o.validateIssuers(); err != nil {
			got = err.Error()
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", args, got, want)
		}
	}
}
