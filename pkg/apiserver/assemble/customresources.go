package assemble

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/customresource"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/registry/scale"
	"bonsai/pkg/apiserver/webhook"
	"bonsai/pkg/health"
)

// addCustomResources adds to the server what serves the objects of CustomResourceDefinitions as long as it runs, if it
// serves definitions.
func (s *Server) addCustomResources() error {
	none := make(chan struct{})
	close(none)
	s.complete = none
	from := &sources{from: s.cfg.Storage, rows: s.cfg.Rows}
	gr := customresource.Definitions()
	definitions := from.of(gr.Group, gr.Resource)
	if from.missing != nil {
		return nil
	}
	seen := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "apiserver_conversion_webhook_duration_seconds", Help: "Conversion webhook request latency",
		Buckets: []float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60},
	}, []string{"result"})
	if err := s.cfg.HTTP.Metrics.Register(seen); err != nil {
		return err
	}
	hooks := newWebhookClient(s.cfg.Catalog, s.cfg.Egress)
	c := customresource.New(customresource.Config{
		Catalog: s.cfg.Catalog, Definitions: definitions, Entry: s.customEntry,
		Hook: func(at *v1.WebhookClientConfig) (customresource.Hook, error) { return newConversionHook(hooks, at) },
		Observe: func(took time.Duration, err error) {
			result := "success"
			if err != nil {
				result = "failure"
			}
			seen.WithLabelValues(result).Observe(took.Seconds())
		},
		Now: time.Now, UID: func() string { return string(uuid.NewUUID()) }, Log: s.cfg.HTTP.Log,
	})
	s.complete = c.Complete()
	s.runs = append(s.runs, hooks.Run, c.Run)
	s.hooks = append(s.hooks, "start-apiextensions-informers", "start-apiextensions-controllers")
	s.begun = append(s.begun, health.Check{Name: startHook + "crd-informer-synced", Run: func(*http.Request) error {
		if !c.Ready() {
			return errors.New("the custom resources are not served yet")
		}
		return nil
	}})
	return nil
}

// customEntry is Entry of the row of a definition.
func (s *Server) customEntry(row *resources.Row, at *customresource.Scale) (catalog.Entry, error) {
	b := Behaviour{}
	if at != nil {
		b.Subresources = map[string]registry.Answerer{
			"scale": {ReadWriter: scale.NewWith(s.cfg.Catalog, row.GroupResource(), scale.Adapter{
				Replicas: at.ReplicasOf, SetReplicas: at.SetReplicas, Observed: at.ObservedOf, Selector: at.SelectorOf,
				Paths: at.Paths, Validated: true,
			})}}
	}
	return s.Entry(row, b)
}

// conversionHook is where a definition's conversion webhook is.
type conversionHook struct {
	client *webhook.Client
	at     *webhook.Hook
}

// newConversionHook reads where a webhook is.
func newConversionHook(client *webhook.Client, at *v1.WebhookClientConfig) (customresource.Hook, error) {
	h := &webhook.Hook{CABundle: at.CABundle}
	switch {
	case at.URL != nil:
		h.URL = *at.URL
	case at.Service != nil:
		h.Service = &webhook.Service{Namespace: at.Service.Namespace, Name: at.Service.Name}
		if at.Service.Path != nil {
			h.Service.Path = *at.Service.Path
		}
		if at.Service.Port != nil {
			h.Service.Port = *at.Service.Port
		}
	}
	return &conversionHook{client, h}, nil
}

// Call implements customresource.Hook.
func (h *conversionHook) Call(ctx context.Context, body []byte, timeout time.Duration, limit int64) ([]byte, error) {
	return h.client.Call(ctx, h.at, body, timeout, limit)
}
