// Package rows lists every resource the project serves. It is apart from package resources because the groups'
// packages, which it imports, need the Row type from there.
package rows

import (
	"slices"
	"time"

	"bonsai/api/admissionregistration"
	"bonsai/api/apiextensions"
	"bonsai/api/apiregistration"
	"bonsai/api/apps"
	"bonsai/api/authentication"
	"bonsai/api/authorization"
	"bonsai/api/autoscaling"
	"bonsai/api/batch"
	"bonsai/api/certificates"
	"bonsai/api/coordination"
	"bonsai/api/core"
	"bonsai/api/discovery"
	"bonsai/api/events"
	"bonsai/api/flowcontrol"
	"bonsai/api/networking"
	"bonsai/api/node"
	"bonsai/api/policy"
	"bonsai/api/rbac"
	"bonsai/api/resource"
	"bonsai/api/resources"
	"bonsai/api/scheduling"
	"bonsai/api/storage"
	"bonsai/api/storagemigration"
)

// Options are what a server may choose about its resources.
type Options struct {
	// EventTTL is how long events are kept (--event-ttl); 0 means one hour.
	EventTTL time.Duration
	// Now is the clock by which a volume's change of phase and the conditions of local APIServices and of signing
	// requests get their times; nil leaves them to who writes the status.
	Now func() time.Time
	// ForbidPrivileged refuses privileged containers, in pods and in templates of pods (--allow-privileged=false).
	ForbidPrivileged bool
}

// All returns all resources with the default options, core first, then by group.
func All() []resources.Row { return With(Options{}) }

// With returns all resources. The slice and its rows belong to the caller.
func With(o Options) []resources.Row {
	if o.EventTTL == 0 {
		o.EventTTL = time.Hour
	}
	all := slices.Concat(
		core.Rows(o.EventTTL, o.Now),
		admissionregistration.Rows(),
		apiextensions.Rows(),
		apiregistration.Rows(o.Now),
		apps.Rows(),
		authentication.Rows(),
		authorization.Rows(),
		autoscaling.Rows(),
		batch.Rows(),
		certificates.Rows(o.Now),
		coordination.Rows(),
		discovery.Rows(),
		events.Rows(o.EventTTL),
		flowcontrol.Rows(),
		networking.Rows(),
		node.Rows(),
		policy.Rows(),
		rbac.Rows(),
		resource.Rows(o.Now),
		scheduling.Rows(),
		storage.Rows(),
		storagemigration.Rows(),
	)
	for i := range all {
		dropDisabled(&all[i])
		keepUnnamedImages(&all[i])
	}
	if o.ForbidPrivileged {
		for i := range all {
			forbidPrivileged(&all[i].Strategy)
		}
	}
	return all
}
