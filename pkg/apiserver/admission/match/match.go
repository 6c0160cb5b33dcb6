// Package match tells what webhooks and policies see of a request and whether it concerns them: by rules, selectors and
// match conditions, in the version that they want. What they make of it is theirs.
package match

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/catalog"
)

// Namespaces reads namespaces; their registry.Store is one.
type Namespaces interface {
	Get(ctx context.Context, ns, name string) (runtime.Object, error)
	GetCached(ctx context.Context, ns, name string) (runtime.Object, error)
}

// Config is what a Matcher stands on. All but Metrics is required.
type Config struct {
	Catalog    *catalog.Catalog
	Namespaces Namespaces
	// Authorizer answers for the "authorizer" of expressions.
	Authorizer authz.Authorizer
	// Metrics may be nil.
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// Matcher is shared by all plug-ins of a server.
type Matcher struct {
	Config
	// Compiler compiles all expressions, so that they share its environments.
	Compiler expression.Compiler
	metrics  *metrics
}

// New returns a Matcher. Metrics can be counted by one only.
func New(cfg Config) *Matcher { return &Matcher{Config: cfg, metrics: newMetrics(cfg.Metrics)} }

// Request begins to look at a request.
func (m *Matcher) Request(a *admission.Attributes) *Request { return &Request{Matcher: m, A: a} }

// Asker is who asks about a request, for metrics and logs.
type Asker struct {
	// Name is the webhook's or the policy's.
	Name string
	// Kind is "webhook" or "policy", and Type "admit" or "validating" (webhooks) or "validate" (policies).
	Kind, Type string
	// Ignores tells that what cannot be evaluated is as good as what does not hold.
	Ignores bool
}
