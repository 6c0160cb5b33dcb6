// Package webhooks has the admission plug-ins MutatingAdmissionWebhook and ValidatingAdmissionWebhook: servers that
// configurations name are asked about requests, and change or refuse them.
//
// A request finds the webhooks that may concern it in a table by what it is about (resource, subresource, operation,
// scope), which is made of the configurations when it is first needed. What the table leaves open, selectors and match
// conditions, is looked at per request. An object is encoded once for all webhooks that want the same version of it.
package webhooks

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/storage/follow"
	"bonsai/pkg/apiserver/webhook"
)

// Caller calls webhooks; *webhook.Client is one.
type Caller interface {
	Call(ctx context.Context, to *webhook.Hook, body []byte, timeout time.Duration, limit int64) ([]byte, error)
}

// Config is what the plug-ins stand on. All but Metrics and the credentials is required.
type Config struct {
	// Mutating and Validating are where the configurations are.
	Mutating, Validating follow.Resource
	// Matcher tells which requests concern whom.
	Matcher *match.Matcher
	Client  Caller
	// MutatingCredentials and ValidatingCredentials are what the webhooks of either plug-in are shown, by host; nil:
	// nothing.
	MutatingCredentials, ValidatingCredentials webhook.Directory
	// Metrics may be nil.
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// Plugins are the two plug-ins. Run keeps them informed.
type Plugins struct {
	mutating, validating *plugin
}

// plugin is what both plug-ins are made of.
type plugin struct {
	*shared
	name     string // as in --enable-admission-plugins
	mutates  bool
	kind     string // "admit" or "validating", as metrics have it
	known    *configurations
	follower *follow.Follower
}

// shared is what the two plug-ins have in common.
type shared struct {
	Config
	reviews reviews
	metrics *metrics
}

// The plug-ins' names.
const (
	mutatingName   = "MutatingAdmissionWebhook"
	validatingName = "ValidatingAdmissionWebhook"
)

// New returns the plug-ins.
func New(cfg Config) *Plugins {
	s := &shared{Config: cfg, reviews: newReviews(), metrics: newMetrics(cfg.Metrics)}
	p := &Plugins{
		mutating: &plugin{shared: s, name: mutatingName, mutates: true, kind: "admit",
			known: &configurations{credentials: cfg.MutatingCredentials}},
		validating: &plugin{shared: s, name: validatingName, kind: "validating",
			known: &configurations{credentials: cfg.ValidatingCredentials}},
	}
	p.mutating.follower = follow.New(cfg.Mutating, p.mutating.known, cfg.Log)
	p.validating.follower = follow.New(cfg.Validating, p.validating.known, cfg.Log)
	return p
}

// Mutating returns MutatingAdmissionWebhook.
func (p *Plugins) Mutating() admission.Plugin {
	return admission.Plugin{Name: mutatingName, Mutator: mutator{p.mutating}}
}

// Validating returns ValidatingAdmissionWebhook.
func (p *Plugins) Validating() admission.Plugin {
	return admission.Plugin{Name: validatingName, Validator: validator{p.validating}}
}

// FromFiles inform the plug-ins of configurations that files describe.
func (p *Plugins) FromFiles() (mutating, validating follow.Handler) {
	return (*fixed)(p.mutating.known), (*fixed)(p.validating.known)
}

// Runs keep the plug-ins informed until their context ends.
func (p *Plugins) Runs() []func(context.Context) error {
	return []func(context.Context) error{p.mutating.follower.Run, p.validating.follower.Run}
}

// HasSynced reports whether the configurations are known. Until then requests wait.
func (p *Plugins) HasSynced() bool {
	return p.mutating.follower.HasSynced() && p.validating.follower.HasSynced()
}

// hooksFor returns the webhooks whose rules match the request.
func (p *plugin) hooksFor(ctx context.Context, a *admission.Attributes) ([]candidate, error) {
	if match.Virtual(a) {
		return nil, nil
	}
	if err := match.Wait(ctx, a, p.follower); err != nil {
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

// exempt tells requests that no webhook of the API is asked about: those for the configurations by which webhooks and
// policies could be taken away again.
func exempt(a *admission.Attributes) bool {
	if a.Resource.Group != admissionregistrationv1.GroupName {
		return false
	}
	switch a.Resource.Resource {
	case "validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies",
		"validatingadmissionpolicybindings",
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings":
		return true
	}
	return false
}

// request is one request. It belongs to one round of one plug-in.
type request struct {
	*plugin
	*match.Request
}

// concerns reports whether a webhook whose rules match is to be called: what its selectors and match conditions say.
func (r *request) concerns(ctx context.Context, c *candidate) (bool, error) {
	if selected, err := r.Selects(ctx, &c.selectors); !selected || err != nil {
		return false, err
	}
	by := match.Asker{Name: c.Name, Kind: "webhook", Type: r.kind, Ignores: c.ignores()}
	meets, err := r.Meets(ctx, &by, c.conditions, func() (*expression.Variables, error) {
		return r.Variables(ctx, c.Target)
	})
	if err != nil {
		return false, admission.Forbid(r.A, "%w", err)
	}
	return meets, nil
}

// callError is a webhook that could not be asked: its failure policy decides.
type callError struct {
	hook string
	err  error
}

func (e *callError) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %v", e.hook, e.err)
}
func (e *callError) Unwrap() error { return e.err }
