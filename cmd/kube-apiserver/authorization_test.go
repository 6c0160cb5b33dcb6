package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestAuthorizationFlags: wrong flags end the start, in the words of a real kube-apiserver v1.36.3.
func TestAuthorizationFlags(t *testing.T) {
	t.Parallel()
	const needed = "--etcd-servers=http://127.0.0.1:1 --service-account-signing-key-file=x " +
		"--service-account-issuer=https://a "
	const alone = "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"
	for _, tt := range []struct {
		args, want string
		modes      []string
	}{
		{"", "", []string{"AlwaysAllow"}}, {"--authorization-mode=Node,RBAC", "", []string{"Node", "RBAC"}},
		{"--authorization-mode=Magic", `authorization-mode "Magic" is not a valid mode`, nil},
		{"--authorization-mode=abac", `authorization-mode "abac" is not a valid mode`, nil},
		{"--authorization-mode=", "at least one authorization-mode must be passed", nil},
		{"--authorization-mode=RBAC,RBAC", `authorization-mode ["RBAC" "RBAC"] has mode specified more than once`, nil},
		{"--authorization-mode=ABAC", "authorization-mode ABAC's authorization policy file not passed", nil},
		{"--authorization-mode=ABAC --authorization-policy-file=p", "", []string{"ABAC"}},
		{"--authorization-mode=RBAC --authorization-policy-file=p",
			"cannot specify --authorization-policy-file without mode ABAC", nil},
		{"--authorization-mode=Webhook", "authorization-mode Webhook's authorization config file not passed", nil},
		{"--authorization-mode=Webhook --authorization-webhook-config-file=k", "", []string{"Webhook"}},
		{"--authorization-mode=RBAC --authorization-webhook-config-file=k",
			"cannot specify --authorization-webhook-config-file without mode Webhook", nil},
		{"--authorization-mode=Webhook --authorization-webhook-config-file=k --authorization-webhook-version=v2",
			`unsupported webhook authorizer version "v2", supported versions are "v1", "v1beta1"`, nil},
		{"--authorization-config=f", "", nil}, {"--authorization-config=f --authorization-policy-file=p", "", nil},
		{"--authorization-config=f --authorization-mode=RBAC", alone, nil},
		{"--authorization-config=f --authorization-webhook-config-file=k", alone, nil},
		{"--authorization-config=f --authorization-webhook-version=v1", alone, nil},
		{"--authorization-config=f --authorization-webhook-cache-authorized-ttl=1s", alone, nil},
		{"--authorization-config=f --authorization-webhook-cache-unauthorized-ttl=1s", alone, nil},
	} {
		o, fs := defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(fs)
		if err := fs.Parse(strings.Fields(needed + tt.args)); err != nil {
			t.Fatal(err)
		}
		err := o.validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.args, err, tt.want)
		}
		if err == nil && !slices.Equal(o.parts.Authorization.Modes, tt.modes) {
			t.Errorf("%s: the modes are %q", tt.args, o.parts.Authorization.Modes)
		}
	}
}
