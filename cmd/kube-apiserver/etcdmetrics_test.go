package main

import (
	"testing"

	"bonsai/api/resources/rows"
)

// TestResourceOf: keys and prefixes of all kinds of resources are known as theirs, and no others.
func TestResourceOf(t *testing.T) {
	t.Parallel()
	of := resourceOf(rows.With(rows.Options{}))
	for key, want := range map[string]string{
		"/registry/pods/a/b":                 "pods",
		"/registry/pods/":                    "pods",
		"/registry/minions/n1":               "nodes",
		"/registry/services/specs/a/b":       "services",
		"/registry/services/endpoints/a/b":   "endpoints",
		"/registry/deployments/a/b":          "deployments.apps",
		"/registry/example.org/widgets/a/b":  "widgets.example.org",
		"/registry/example.org/widgets/":     "widgets.example.org",
		"/registry/masterleases/192.0.2.1":   "",
		"/registry/ranges/serviceips":        "",
		"/registry/peerserverleases/x/y":     "",
		"/registry/health":                   "",
		"compact_rev_key":                    "",
		"/registry/leases/kube-system/lease": "leases.coordination.k8s.io",
	} {
		if got := of(key).String(); got != want {
			t.Errorf("%s is of %q, want %q", key, got, want)
		}
	}
}
