// Package core holds what we know of the kinds of the core group (v1): their rows, defaults, validation, strategies and
// table columns, as pure functions. Names, defaults, limits and messages are Kubernetes'.
package core

import (
	"time"

	"bonsai/api/resources"
)

// Rows returns the resources of the core group. Events vanish after eventTTL.
func Rows(eventTTL time.Duration) []resources.Row {
	event := eventRow()
	event.TTL = eventTTL
	return []resources.Row{
		bindingRow(),
		configMapRow(),
		endpointsRow(),
		event,
		limitRangeRow(),
		namespaceRow(),
		nodeRow(),
		podRow(),
		podTemplateRow(),
		replicationControllerRow(),
		resourceQuotaRow(),
		secretRow(),
		serviceAccountRow(),
		serviceRow(),
	}
}
