package main

import (
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"bonsai/pkg/scheduler/extender"
	"bonsai/pkg/scheduler/framework"
)

// newExtenders returns the configured extenders: first those that may not be ignored, as the answers of the others are
// worth nothing if one of them fails.
func newExtenders(c *configv1.KubeSchedulerConfiguration, log *slog.Logger) ([]framework.Extender, error) {
	var must, may []framework.Extender
	for _, config := range c.Extenders {
		e, err := extender.New(config, log)
		switch {
		case err != nil:
			return nil, fmt.Errorf("couldn't build extenders: %w", err)
		case config.Ignorable:
			may = append(may, e)
		default:
			must = append(must, e)
		}
	}
	return append(must, may...), nil
}

// ignored are the resources that an extender alone looks at.
func ignored(list []configv1.Extender) func(corev1.ResourceName) bool {
	names := map[corev1.ResourceName]bool{}
	for _, e := range list {
		for _, r := range e.ManagedResources {
			if r.IgnoredByScheduler {
				names[corev1.ResourceName(r.Name)] = true
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	return func(name corev1.ResourceName) bool { return names[name] }
}
