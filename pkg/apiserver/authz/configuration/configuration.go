// Package configuration reads the file of --authorization-config, whose versions, rules and messages are Kubernetes'
// (https://kubernetes.io/docs/reference/access-authn-authz/authorization/#using-configuration-file-for-authorization),
// and decides by the authorizers that it names, in their order. A changed file holds as soon as it is good.
package configuration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/configfile"
	"bonsai/pkg/apiserver/request"
)

// Mode is one authorizer of a file.
type Mode struct {
	Type, Name string
	// Webhook is nil for other types. Conditions are its match conditions, compiled.
	Webhook    *WebhookConfiguration
	Conditions []*expression.Program
}

// Parse reads and checks a file.
func Parse(text []byte) ([]Mode, error) {
	var c AuthorizationConfiguration
	if len(text) > 0 {
		if err := configfile.Decode(text, "AuthorizationConfiguration", &c); err != nil {
			return nil, fmt.Errorf("failed to load AuthorizationConfiguration from file: %w", err)
		}
	}
	for _, a := range c.Authorizers {
		if a.Webhook != nil {
			a.Webhook.setDefaults()
		}
	}
	return validate(&c)
}

// Built is what decides by the modes of a file.
type Built interface {
	authz.Authorizer
	authz.Lister
}

// Options are what an Authorizer needs beside its file.
type Options struct {
	// Build returns what decides by modes.
	Build func([]Mode) (Built, error)
	// Metrics counts reloads; nil: nobody does.
	Metrics *configfile.Metrics
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Authorizer decides by a file, which may change. It is safe for concurrent use.
type Authorizer struct {
	build   func([]Mode) (Built, error)
	file    *configfile.File // for Run alone
	current atomic.Pointer[generation]
}

var _ Built = (*Authorizer)(nil)

// generation is one state of the file in force.
type generation struct {
	Built
	modes []Mode
	hash  string
}

// Open returns an Authorizer by the file path, which Run follows.
func Open(path string, o Options) (*Authorizer, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Authorizer{build: o.Build, file: configfile.New(path, "authorization configuration", o.Metrics, o.Now, o.Log)}
	g, err := a.read()
	if err != nil {
		return nil, err
	}
	if err := a.complete(g); err != nil {
		return nil, err
	}
	a.current.Store(g)
	o.Metrics.Applied(g.hash)
	return a, nil
}

func (a *Authorizer) read() (*generation, error) {
	text, err := a.file.Read()
	if err != nil {
		return nil, err
	}
	modes, err := Parse(text)
	return &generation{modes: modes, hash: configfile.Hash(text)}, err
}

func (a *Authorizer) complete(g *generation) (err error) {
	if g.Built, err = a.build(g.modes); err != nil {
		return fmt.Errorf("invalid authorization config: %w", err)
	}
	return nil
}

// Run follows the file until ctx ends.
func (a *Authorizer) Run(ctx context.Context) error {
	a.file.Follow(ctx, a.reload)
	return nil
}

// errRestart is a change for which other parts of the server would have to be there, or not.
var errRestart = errors.New("the authorizers Node and RBAC can not be added or removed without a restart")

func (a *Authorizer) reload(context.Context) (string, error) {
	next, err := a.read()
	if err != nil {
		return "", err
	}
	old := a.current.Load()
	if next.hash == old.hash {
		return "", nil
	}
	for _, kind := range []string{Node, RBAC} {
		if Uses(old.modes, kind) != Uses(next.modes, kind) {
			return "", errRestart
		}
	}
	if err := a.complete(next); err != nil {
		return "", err
	}
	a.current.Store(next)
	return next.hash, nil
}

// Modes returns those in force.
func (a *Authorizer) Modes() []Mode { return a.current.Load().modes }

// Uses reports whether one of modes is of a type.
func Uses(modes []Mode, kind string) bool {
	return slices.ContainsFunc(modes, func(m Mode) bool { return m.Type == kind })
}

// Authorize implements authz.Authorizer.
func (a *Authorizer) Authorize(ctx context.Context, at authz.Attributes) (authz.Decision, string, error) {
	return a.current.Load().Authorize(ctx, at)
}

// ReviewRules implements authz.Lister.
func (a *Authorizer) ReviewRules(ctx context.Context, user *request.User,
	namespace string) authorizationv1.SubjectRulesReviewStatus {
	return a.current.Load().ReviewRules(ctx, user, namespace)
}
