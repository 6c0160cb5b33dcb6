package assemble

import (
	"log/slog"
	"slices"
	"testing"

	"bonsai/pkg/apiserver/bootstrap"
)

// Every part of what an empty cluster starts with has a check of its own under the name that upstream's start hook has,
// and fails until it is stored.
func TestBootstrapChecks(t *testing.T) {
	t.Parallel()
	policy, err := bootstrap.DefaultPolicy()
	if err != nil {
		t.Fatal(err)
	}
	boot := bootstrap.New(bootstrap.Config{Policy: policy, Service: &bootstrap.ServiceConfig{},
		Authentication: func() (*bootstrap.Authentication, error) {
			return &bootstrap.Authentication{}, nil
		}, Log: slog.New(slog.DiscardHandler)})
	var names []string
	for _, c := range bootstrapChecks(boot, policy, &authorization{}) {
		names = append(names, c.Name)
		if c.Run(nil) == nil {
			t.Errorf("%s is well before anything is stored", c.Name)
		}
	}
	want := []string{"poststarthook/start-system-namespaces-controller",
		"poststarthook/start-kubernetes-service-cidr-controller", "poststarthook/bootstrap-controller",
		"poststarthook/rbac/bootstrap-roles",
		"poststarthook/scheduling/bootstrap-system-priority-classes",
		"poststarthook/priority-and-fairness-config-producer", "poststarthook/start-legacy-token-tracking-controller",
		"poststarthook/start-cluster-authentication-info-controller"}
	if !slices.Equal(names, want) {
		t.Errorf("checks %v, want %v", names, want)
	}
}

// A server that makes no roles has none to wait for.
func TestNoRolesToWaitFor(t *testing.T) {
	t.Parallel()
	boot := bootstrap.New(bootstrap.Config{Log: slog.New(slog.DiscardHandler)})
	if run, known := rolesKnown(boot, nil, &authorization{}); run != nil || known != nil {
		t.Error("it waits for roles that nobody makes")
	}
}
