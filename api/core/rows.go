// Package core holds what we know of the kinds of the core group (v1): their rows, defaults, validation, strategies and
// table columns, as pure functions. Names, defaults, limits and messages are Kubernetes'.
package core

import (
	"time"

	"bonsai/api/resources"
)

// Rows returns the resources of the core group. Events vanish after eventTTL; now is the clock and may be
// nil (see rows.Options).
func Rows(eventTTL time.Duration, now func() time.Time) []resources.Row {
	event := eventRow()
	event.TTL = eventTTL
	return []resources.Row{
		bindingRow(),
		componentStatusRow(),
		configMapRow(),
		endpointsRow(),
		event,
		limitRangeRow(),
		namespaceRow(),
		nodeRow(),
		persistentVolumeRow(now),
		persistentVolumeClaimRow(),
		podRow(),
		podTemplateRow(),
		replicationControllerRow(),
		resourceQuotaRow(),
		secretRow(),
		serviceAccountRow(),
		serviceRow(),
	}
}
