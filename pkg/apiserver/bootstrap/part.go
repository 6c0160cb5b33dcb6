package bootstrap

import (
	"context"
	"sync/atomic"
)

// The names of parts are those of upstream's start hooks that make the same things; /readyz shows them behind
// "poststarthook/".
const (
	PartNamespaces      = "start-system-namespaces-controller"
	PartService         = "bootstrap-controller"
	PartServiceCIDR     = "start-kubernetes-service-cidr-controller"
	PartRoles           = "rbac/bootstrap-roles"
	PartPriorityClasses = "scheduling/bootstrap-system-priority-classes"
	PartFairness        = "priority-and-fairness-config-producer"
	PartTokenTracking   = "start-legacy-token-tracking-controller"
	PartAuthentication  = "start-cluster-authentication-info-controller"
)

// Part is one of the things that a Bootstrap makes.
type Part struct {
	Name string
	make func(context.Context) error
	// kept tells that it is looked after when it has been made.
	kept bool
	made atomic.Bool
}

// Made reports whether the part has been made once.
func (p *Part) Made() bool { return p.made.Load() }

func (p *Part) run(ctx context.Context) error {
	if err := p.make(ctx); err != nil {
		return err
	}
	p.made.Store(true)
	return nil
}
