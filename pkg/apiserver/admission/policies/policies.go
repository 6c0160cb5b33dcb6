// Package policies has the admission plug-ins MutatingAdmissionPolicy and ValidatingAdmissionPolicy: expressions (CEL)
// that policies hold change or refuse requests, where a binding puts them in force.
//
// A request finds the policies that may concern it in a table by what it is about (resource, subresource, operation,
// scope), which is made of the policies and bindings when it is first needed. What the table leaves open, names,
// selectors and match conditions, is looked at per request. A policy is compiled when the first request meets it, once
// for all requests.
package policies

import (
	"context"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage/follow"
)

// Merger merges apply configurations into objects; *fieldmanager.Manager is one.
type Merger interface {
	// Merge returns live, an object of kind of the row or of one of its subresources, with config merged in, as an
	// unstructured one. A config that touches a list, map or struct that is replaced as a whole is refused.
	Merge(row *resources.Row, kind schema.GroupVersionKind, live runtime.Object, config map[string]any) (map[string]any,
		error)
}

// Config is what the plug-ins stand on. All but Metrics is required.
type Config struct {
	// Where the policies and their bindings are.
	Mutating, MutatingBindings     follow.Resource
	Validating, ValidatingBindings follow.Resource
	// Matcher tells which requests concern whom.
	Matcher *match.Matcher
	// Stores finds where parameters are.
	Stores func(schema.GroupResource) registry.Store
	// Merger carries out apply configurations.
	Merger Merger
	// Metrics may be nil.
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// Plugins are the two plug-ins. Run keeps them informed.
type Plugins struct{ mutating, validating *plugin }

// plugin is what both plug-ins are made of.
type plugin struct {
	*Config
	name               string // as in --enable-admission-plugins
	kind               string // "admit" or "validate", as metrics have it
	metrics            *metrics
	known              *known
	policies, bindings *follow.Follower
}

// The plug-ins' names.
const (
	mutatingName   = "MutatingAdmissionPolicy"
	validatingName = "ValidatingAdmissionPolicy"
)

// New returns the plug-ins.
func New(cfg Config) *Plugins {
	m := newMetrics(cfg.Metrics)
	informed := func(name, kind string, policies, bindings follow.Resource) *plugin {
		p := &plugin{Config: &cfg, name: name, kind: kind, metrics: m, known: &known{}}
		p.policies = follow.New(policies, (*knownPolicies)(p.known), cfg.Log)
		p.bindings = follow.New(bindings, (*knownBindings)(p.known), cfg.Log)
		return p
	}
	return &Plugins{
		mutating:   informed(mutatingName, "admit", cfg.Mutating, cfg.MutatingBindings),
		validating: informed(validatingName, "validate", cfg.Validating, cfg.ValidatingBindings),
	}
}

// Mutating returns MutatingAdmissionPolicy.
func (p *Plugins) Mutating() admission.Plugin {
	return admission.Plugin{Name: mutatingName, Mutator: mutator{p.mutating}}
}

// Validating returns ValidatingAdmissionPolicy.
func (p *Plugins) Validating() admission.Plugin {
	return admission.Plugin{Name: validatingName, Validator: validator{p.validating}}
}

// FromFiles inform a plug-in of what files describe.
type FromFiles struct{ Policies, Bindings follow.Handler }

// FromFiles inform the plug-ins of policies and bindings that files describe.
func (p *Plugins) FromFiles() (mutating, validating FromFiles) {
	of := func(k *known) FromFiles { return FromFiles{(*fixedPolicies)(k), (*fixedBindings)(k)} }
	return of(p.mutating.known), of(p.validating.known)
}

// Runs keep the plug-ins informed until their context ends.
func (p *Plugins) Runs() []func(context.Context) error {
	return []func(context.Context) error{p.mutating.policies.Run, p.mutating.bindings.Run, p.validating.policies.Run,
		p.validating.bindings.Run}
}

// concerned returns the policies that may concern the request, with their bindings.
func (p *plugin) concerned(ctx context.Context, a *admission.Attributes) ([]candidate, error) {
	if match.Virtual(a) {
		return nil, nil
	}
	if err := match.Wait(ctx, a, p.policies, p.bindings); err != nil {
		return nil, err
	}
	found := p.known.current().candidates(p.Matcher.Catalog.Snapshot(), a)
	if !exempt(a) {
		return found, nil
	}
	var fixed []candidate
	for _, c := range found {
		if c.fixed {
			fixed = append(fixed, c)
		}
	}
	return fixed, nil
}

// exempt tells requests that no policy of the API is about: those for policies and bindings, by which they could be
// taken away again.
func exempt(a *admission.Attributes) bool {
	return a.Resource.Group == admissionregistrationv1.GroupName &&
		slices.Contains([]string{"validatingadmissionpolicies", "validatingadmissionpolicybindings",
			"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}, a.Resource.Resource)
}
