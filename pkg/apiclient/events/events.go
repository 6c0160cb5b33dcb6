// Package events gives access to the kinds of events.k8s.io/v1 that components use.
package events

import (
	eventsv1 "k8s.io/api/events/v1"

	"bonsai/pkg/apiclient"
)

// Events gives access to events.
func Events(c *apiclient.Client) *apiclient.Resource[*eventsv1.Event] {
	return apiclient.NewResource(c, eventsv1.SchemeGroupVersion, "events", &eventsv1.Event{})
}
