package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestOutsideFlags: wrong flags about tokens that others issue, or verify, end the start with their names.
func TestOutsideFlags(t *testing.T) {
	t.Parallel()
	const needed = "--etcd-servers=http://127.0.0.1:1 --service-account-signing-key-file=x " +
		"--service-account-issuer=https://a "
	const oidc = "--oidc-issuer-url=https://b --oidc-client-id=c "
	const together = "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
	for _, tt := range []struct{ args, want string }{
		{"", ""}, {"--service-account-issuer=kubernetes", ""},
		{"--service-account-issuer=https://a", `service-account-issuer "https://a" is already specified`},
		{"--service-account-issuer=:", `service-account-issuer ":" contained a ':' but was not a valid URL`},
		{"--service-account-jwks-uri=https://a/jwks", ""},
		{"--service-account-jwks-uri=http://a/jwks",
			"service-account-jwks-uri requires https scheme, parsed as: http://a/jwks"},
		{"--service-account-issuer=https://u:secret@a --service-account-issuer=https://u:secret@a",
			`service-account-issuer "https://u:xxxxx@a" is already specified`},
		{"--service-account-issuer=https://u:secret@a:b", "not a valid URL"},
		{"--service-account-jwks-uri=http://u:secret@a/jwks", "parsed as: http://u:xxxxx@a/jwks"},
		{"--service-account-jwks-uri=https://u:secret@a:b", "service-account-jwks-uri must be a valid URL"},
		{"--etcd-servers-overrides=apps#http://u:secret@b;http://u:secret@c",
			`not "apps#http://u:xxxxx@b;http://u:xxxxx@c"`},
		{oidc, ""}, {oidc + "--oidc-signing-algs=HS256", `unsupported signing alg: "HS256"`},
		{"--oidc-issuer-url=https://b", together}, {"--oidc-groups-claim=g", together}, {"--oidc-ca-file=/x", together},
		{oidc + "--authentication-config=f", "authentication-config file and oidc-* flags are mutually exclusive"},
		{"--authentication-config=f", ""},
		{"--authentication-token-webhook-version=v2", "--authentication-token-webhook-version"},
		{"--authentication-token-webhook-cache-ttl=-1s", "--authentication-token-webhook-cache-ttl"},
		{"--authentication-token-webhook-config-file=/x", ""},
	} {
		o, fs := defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(fs)
		if err := fs.Parse(strings.Fields(needed + tt.args)); err != nil {
			t.Fatal(err)
		}
		err := o.validate()
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows a password: %v", tt.args, err)
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.args, err, tt.want)
		}
	}
}
