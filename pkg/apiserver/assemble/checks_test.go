package assemble

import (
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/health"
)

// Those of the real server's /livez?verbose that pass once it has started, in its order.
const realChecks = `poststarthook/start-apiserver-admission-initializer
poststarthook/generic-apiserver-start-informers
poststarthook/priority-and-fairness-config-consumer
poststarthook/priority-and-fairness-filter
poststarthook/storage-object-count-tracker-hook
poststarthook/start-apiextensions-informers
poststarthook/start-apiextensions-controllers
poststarthook/crd-informer-synced
poststarthook/start-system-namespaces-controller
poststarthook/peer-endpoint-reconciler-controller
poststarthook/start-cluster-authentication-info-controller
poststarthook/start-kube-apiserver-identity-lease-controller
poststarthook/start-kube-apiserver-identity-lease-garbage-collector
poststarthook/storage-readiness
poststarthook/start-legacy-token-tracking-controller
poststarthook/start-service-ip-repair-controllers
poststarthook/rbac/bootstrap-roles
poststarthook/scheduling/bootstrap-system-priority-classes
poststarthook/priority-and-fairness-config-producer
poststarthook/bootstrap-controller
poststarthook/start-kubernetes-service-cidr-controller
poststarthook/start-kube-aggregator-informers
poststarthook/apiservice-status-local-available-controller
poststarthook/apiservice-status-remote-available-controller
poststarthook/apiservice-registration-controller
poststarthook/apiservice-discovery-controller
poststarthook/kube-apiserver-autoregistration
autoregister-completion
poststarthook/apiservice-openapi-controller
poststarthook/apiservice-openapiv3-controller
`

// namesOf returns the names of checks, one a line, and how many fail.
func namesOf(checks []health.Check) (names string, failed int) {
	for _, c := range checks {
		names += c.Name + "\n"
		if c.Run(nil) != nil {
			failed++
		}
	}
	return names, failed
}

// The checks are the real server's, in its order, and what stands for a loop fails until it runs.
func TestChecks(t *testing.T) {
	t.Parallel()
	cfg := real(t)
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got, failed := namesOf(s.Started)
	if got != realChecks {
		t.Errorf("checks:\n%swant:\n%s", got, realChecks)
	}
	if failed != len(s.Started) {
		t.Errorf("%d of %d checks fail before the server runs", failed, len(s.Started))
	}
	if got, _ := namesOf(s.Ready); got != "informer-sync\n" {
		t.Errorf("only for /readyz: %s", got)
	}
	s.started.Store(true)
	for _, hook := range cfg.Parts.Hooks {
		i := slices.IndexFunc(s.Started, func(c health.Check) bool { return c.Name == startHook+hook })
		if err := s.Started[i].Run(nil); err != nil {
			t.Errorf("%s in a server whose loops run: %v", hook, err)
		}
	}
}

// A server without a part lists none of its checks.
func TestChecksOfMissingParts(t *testing.T) {
	t.Parallel()
	cfg := real(t)
	cfg.Parts.Hooks, cfg.Parts.Started = nil, nil
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := namesOf(s.Started)
	for _, absent := range []string{"priority-and-fairness", "bootstrap", "identity-lease"} {
		if strings.Contains(got, absent) {
			t.Errorf("%s is listed:\n%s", absent, got)
		}
	}
}
