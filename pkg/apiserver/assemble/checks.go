package assemble

import (
	"errors"
	"net/http"
	"slices"

	"bonsai/pkg/health"
)

// startHook is what upstream puts before the names of checks that stand for something that starts with the server.
const startHook = "poststarthook/"

// checkOrder is upstream's order of the checks that pass once the server has started. Those of parts that a server
// lacks are left out.
func checkOrder() []string {
	return []string{
		startHook + "start-apiserver-admission-initializer",
		startHook + "generic-apiserver-start-informers",
		startHook + "priority-and-fairness-config-consumer",
		startHook + "priority-and-fairness-filter",
		startHook + "storage-object-count-tracker-hook",
		startHook + "start-apiextensions-informers",
		startHook + "start-apiextensions-controllers",
		startHook + "crd-informer-synced",
		startHook + "start-system-namespaces-controller",
		startHook + "peer-endpoint-reconciler-controller",
		startHook + "start-cluster-authentication-info-controller",
		startHook + "start-kube-apiserver-identity-lease-controller",
		startHook + "start-kube-apiserver-identity-lease-garbage-collector",
		startHook + "storage-readiness",
		startHook + "start-legacy-token-tracking-controller",
		startHook + "start-service-ip-repair-controllers",
		startHook + "rbac/bootstrap-roles",
		startHook + "scheduling/bootstrap-system-priority-classes",
		startHook + "priority-and-fairness-config-producer",
		startHook + "bootstrap-controller",
		startHook + "start-kubernetes-service-cidr-controller",
		startHook + "start-kube-aggregator-informers",
		startHook + "apiservice-status-local-available-controller",
		startHook + "apiservice-status-remote-available-controller",
		startHook + "apiservice-registration-controller",
		startHook + "apiservice-discovery-controller",
		startHook + "kube-apiserver-autoregistration",
		"autoregister-completion",
		startHook + "apiservice-openapi-controller",
		startHook + "apiservice-openapiv3-controller",
	}
}

// startChecks returns the checks of hooks, which pass when the server's loops run, and those that look at more, in
// upstream's order; unknown ones come last.
func (s *Server) startChecks(hooks []string, more []health.Check) []health.Check {
	checks := slices.Clone(more)
	for _, name := range hooks {
		checks = append(checks, health.Check{Name: startHook + name, Run: func(*http.Request) error {
			if !s.started.Load() {
				return errors.New("not started yet")
			}
			return nil
		}})
	}
	order := checkOrder()
	place := func(c health.Check) int {
		if i := slices.Index(order, c.Name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(checks, func(a, b health.Check) int { return place(a) - place(b) })
	return checks
}
