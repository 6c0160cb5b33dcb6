package validatingadmissionpolicystatus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"bonsai/api/admissionregistration/typecheck"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/served"
)

// server knows what the API server serves, for a while: many policies at once ask once. One policy is checked at a
// time, as schemas are large.
type server struct {
	client *apiclient.Client
	now    func() time.Time

	mu      sync.Mutex
	read    time.Time // guarded by mu, as all below
	catalog *served.Catalog
	schemas map[schema.GroupVersion]map[string]*spec.Schema
}

func newServer(c *apiclient.Client, now func() time.Time) *server {
	return &server{client: c, now: now}
}

// ask lets by look at what is served.
func (s *server) ask(ctx context.Context, by func(typecheck.Served) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.catalog == nil || s.now().Sub(s.read) > keep {
		catalog, err := served.Read(ctx, s.client)
		if catalog == nil {
			return err
		}
		// A group whose server is down is not checked against.
		s.read, s.catalog, s.schemas = s.now(), catalog, map[schema.GroupVersion]map[string]*spec.Schema{}
	}
	return by(asked{s, ctx})
}

// forget lets go what was read some time ago.
func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now().Sub(s.read) > keep {
		s.catalog, s.schemas = nil, nil
	}
}

// asked is a server whose mutex is held.
type asked struct {
	*server
	ctx context.Context //nolint:containedctx // of the one ask
}

// Kinds implements typecheck.Served.
func (a asked) Kinds(gvr schema.GroupVersionResource) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, r := range a.catalog.Resources {
		if r.Resource == gvr.Resource && (gvr.Group == "" || r.Group == gvr.Group) {
			kind := schema.GroupVersionKind{Group: r.Group, Version: gvr.Version, Kind: r.Kind}
			if _, ok := a.catalog.ForKind(kind); ok {
				out = append(out, kind)
			}
		}
	}
	slices.SortFunc(out, func(x, y schema.GroupVersionKind) int { return strings.Compare(x.Group, y.Group) })
	return out
}

// Schemas implements typecheck.Served.
func (a asked) Schemas(gv schema.GroupVersion) (map[string]*spec.Schema, error) {
	if all, ok := a.schemas[gv]; ok {
		return all, nil
	}
	path := "/openapi/v3/apis/" + gv.String()
	if gv.Group == "" {
		path = "/openapi/v3/api/" + gv.Version
	}
	body, err := a.client.Document(a.ctx, path, "application/json")
	if apierrors.IsNotFound(err) {
		a.schemas[gv] = nil
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", path, err)
	}
	a.schemas[gv] = doc.Components.Schemas
	return doc.Components.Schemas, nil
}
