package assemble

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/fairness"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/health"
)

// Fairness says how requests get their turns.
type Fairness struct {
	// Seats is how many the server has in all; 0: priority and fairness are off, and plain bounds hold.
	Seats int
	// RequestTimeout is the time of requests that have no deadline of their own.
	RequestTimeout time.Duration
	// Count tells how many objects there are under a key prefix, about; nil: nobody knows.
	Count func(prefix string) int
}

// newFairness makes what gives requests their turns, or nil where plain bounds do.
func newFairness(o *Fairness, c *catalog.Catalog, objects *sources, log *slog.Logger) (*fairness.Dispatcher, error) {
	if o.Seats == 0 {
		return nil, nil
	}
	cfg := fairness.Config{Seats: o.Seats, RequestTimeout: o.RequestTimeout, Log: log,
		Store:   late(c)(flowcontrolv1.GroupName, "flowschemas"),
		Schemas: objects.of(flowcontrolv1.GroupName, "flowschemas"),
		Levels:  objects.of(flowcontrolv1.GroupName, "prioritylevelconfigurations")}
	if o.Count != nil {
		cfg.Count = func(group, resource string) int {
			r := c.Snapshot().Resource(schema.GroupResource{Group: group, Resource: resource})
			if r == nil || r.Row.NotStored {
				return 0
			}
			return o.Count(registry.Prefix(r.Row))
		}
	}
	return fairness.New(cfg)
}

// fairnessKnown fails until requests are classified by the stored objects.
func fairnessKnown(d *fairness.Dispatcher) health.Check {
	return health.Check{Name: startHook + "priority-and-fairness-config-consumer", Run: func(*http.Request) error {
		if !d.Synced() {
			return errors.New("the stored FlowSchemas and PriorityLevelConfigurations are not known yet")
		}
		return nil
	}}
}
