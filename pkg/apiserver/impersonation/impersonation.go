// Package impersonation decides whether a caller may act as another user for what it asks. Constrained impersonation
// (KEP-5284) takes two rights: to be that user ("impersonate:MODE") and to do just this as that user
// ("impersonate-on:MODE:VERB"). What no such rights cover may be covered by the older verb "impersonate", which is the
// right to do everything as that user.
package impersonation

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/cache"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

// Permissions are remembered so long, and at most so many; each takes a hash and a pointer. Refusals are not
// remembered, nor is what the older verb allows.
const (
	remembered    = 10 * time.Second
	maxRemembered = 4096
	// A caller's last mode decides only which questions come first.
	modeRemembered = time.Hour
	maxCallers     = 1024
)

// Impersonator decides. It may be used by several goroutines.
type Impersonator struct {
	authorizer authz.Authorizer
	metrics    *metrics
	now        func() time.Time
	// allowed has the hashes of actions (caller, user and request) and of identities (mode, caller and user) that were
	// allowed of late.
	allowed *cache.LRUExpireCache
	// lastMode has the mode that a caller, by the hash of its name, was last allowed. It is tried first, so that a
	// caller with one kind of permission does not have to fail the others each time. A refused caller gets the refusal
	// of the first mode tried.
	lastMode *cache.LRUExpireCache
}

// New returns an Impersonator that asks authorizer and registers its metrics with r. now is the clock.
func New(authorizer authz.Authorizer, r prometheus.Registerer, now func() time.Time) *Impersonator {
	c := clock(now)
	return &Impersonator{authorizer: authorizer, metrics: newMetrics(r), now: now,
		allowed:  cache.NewLRUExpireCacheWithClock(maxRemembered, c),
		lastMode: cache.NewLRUExpireCacheWithClock(maxCallers, c)}
}

type clock func() time.Time

func (c clock) Now() time.Time { return c() }

// Impersonated is whom a caller acts as.
type Impersonated struct {
	User *request.User
	// Constraint is the verb that allowed it: impersonate:MODE. It is empty for the older verb.
	Constraint string
}

// As returns wanted, completed, if caller may act as it for what info asks. The error is the 403 of the first mode that
// was tried.
func (i *Impersonator) As(ctx context.Context, caller, wanted *request.User, info *request.Info) (*Impersonated,
	error) {
	start := i.now()
	var refusal error
	for _, m := range i.order(caller) {
		if !m.concerns(caller, wanted) {
			continue
		}
		err := i.try(ctx, m, caller, wanted, info)
		if err == nil {
			i.lastMode.Add(callerKey(caller), m, modeRemembered)
			i.metrics.attempt(m.name, true, i.now().Sub(start))
			return &Impersonated{User: completed(wanted, m.groups(wanted)), Constraint: m.constraint()}, nil
		}
		if refusal == nil {
			refusal = err
		}
	}
	i.metrics.attempt("", false, i.now().Sub(start))
	return nil, refusal
}

// order is the modes as they are tried for caller.
func (i *Impersonator) order(caller *request.User) []*mode {
	modes := allModes()
	last, ok := i.lastMode.Get(callerKey(caller))
	if !ok {
		return modes
	}
	first := last.(*mode)
	out := []*mode{first}
	for _, m := range modes {
		if m.name != first.name {
			out = append(out, m)
		}
	}
	return out
}

// try asks whether caller may act as wanted in mode m; nil: it may.
func (i *Impersonator) try(ctx context.Context, m *mode, caller, wanted *request.User, info *request.Info) error {
	if !m.constrained() {
		return i.askAll(ctx, m, caller, m.identity(wanted))
	}
	action := actionKey(m, caller, wanted, info)
	if _, ok := i.allowed.Get(action); ok {
		return nil
	}
	on := *info
	on.Verb = "impersonate-on:" + m.name + ":" + info.Verb
	if err := i.ask(ctx, m, authz.Attributes{User: caller, Info: on}, ""); err != nil {
		return err
	}
	identity := identityKey(m, caller, wanted)
	if _, ok := i.allowed.Get(identity); !ok {
		if err := i.askAll(ctx, m, caller, m.identity(wanted)); err != nil {
			return err
		}
		i.allowed.Add(identity, nil, remembered)
	}
	i.allowed.Add(action, nil, remembered)
	return nil
}

func (i *Impersonator) askAll(ctx context.Context, m *mode, caller *request.User, questions []question) error {
	for _, q := range questions {
		if err := i.ask(ctx, m, authz.Attributes{User: caller, Info: q.Info}, q.never); err != nil {
			return err
		}
	}
	return nil
}

// ask is one question to the authorizer, unless the answer is never: then that is the reason.
func (i *Impersonator) ask(ctx context.Context, m *mode, a authz.Attributes, never string) error {
	if never != "" {
		return authz.Forbidden(a, never)
	}
	start := i.now()
	decision, reason, err := i.authorizer.Authorize(ctx, a)
	allowed := err == nil && decision == authz.Allow
	i.metrics.question(m.name, allowed, i.now().Sub(start))
	if !allowed {
		return authz.Forbidden(a, reason)
	}
	return nil
}
