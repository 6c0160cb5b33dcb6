// Package bootstrap makes what the API server brings along into an empty cluster, and keeps it there: the system
// namespaces, the default roles and bindings, the two system priority classes, the authentication settings that
// extension servers read, the day since which the use of tokens in secrets is noted, the default ServiceCIDR, the
// Service "kubernetes" with its endpoints, and the mandatory and suggested objects of priority and fairness. All of it
// is idempotent; what an administrator took away from an object with the annotation autoupdate=true comes back at the
// next start.
package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// Config says what to make.
type Config struct {
	Stores registry.Stores
	// Policy are the roles and bindings; nil: none (no RBAC).
	Policy *Policy
	// Service is the Service "kubernetes"; nil: none.
	Service *ServiceConfig
	// Authentication tells what extension servers need to recognise callers, as it is now; nil: none.
	Authentication func() (*Authentication, error)
	Log            *slog.Logger
}

// Bootstrap makes and keeps what Config says.
type Bootstrap struct {
	cfg Config
	// parts are what Config asks for. The first of them are what the others need: namespaces, addresses.
	parts []*Part
	first int
}

// New returns a Bootstrap; nothing is made before Run or Apply.
func New(cfg Config) *Bootstrap {
	b := &Bootstrap{cfg: cfg}
	b.parts = append(b.parts, &Part{Name: PartNamespaces, make: b.namespaces, kept: true})
	if cfg.Service != nil {
		b.parts = append(b.parts, &Part{Name: PartServiceCIDR, make: b.serviceCIDR, kept: true})
	}
	b.first = len(b.parts)
	if cfg.Service != nil {
		b.parts = append(b.parts, &Part{Name: PartService, make: b.service, kept: true})
	}
	if cfg.Policy != nil {
		b.parts = append(b.parts, &Part{Name: PartRoles, make: b.policy})
	}
	b.parts = append(b.parts, &Part{Name: PartPriorityClasses, make: b.priorityClasses},
		&Part{Name: PartFairness, make: b.fairness, kept: true})
	b.parts = append(b.parts, &Part{Name: PartTokenTracking, make: b.tokenTracking, kept: true})
	if cfg.Authentication != nil {
		b.parts = append(b.parts, &Part{Name: PartAuthentication, make: b.authentication, kept: true})
	}
	return b
}

// Parts are all that is made.
func (b *Bootstrap) Parts() []*Part { return b.parts }

// keepEvery is how often Run looks after what must not be missing; retryAfter how soon it tries again what failed.
const (
	keepEvery  = time.Minute
	retryAfter = 200 * time.Millisecond
)

// Run makes everything, again and again until it succeeds, then looks after what must not be missing until ctx ends.
func (b *Bootstrap) Run(ctx context.Context) error {
	wait := time.Duration(0)
	for done := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		run := b.Apply
		if done {
			run = b.reconcile
		}
		switch err := run(ctx); {
		case err != nil && ctx.Err() == nil:
			b.cfg.Log.Warn("bootstrap failed", "err", err, "retry", retryAfter)
			wait = retryAfter
		case err == nil && !done:
			done = true
			fallthrough
		default:
			wait = keepEvery
		}
	}
}

// Apply makes everything once: namespaces and the range of addresses first, then all that needs them at the same time.
func (b *Bootstrap) Apply(ctx context.Context) error {
	return b.run(ctx, b.parts)
}

// reconcile makes the namespaces and the range of addresses, then the others that are kept.
func (b *Bootstrap) reconcile(ctx context.Context) error {
	return b.run(ctx, slices.DeleteFunc(slices.Clone(b.parts), func(p *Part) bool { return !p.kept }))
}

// run makes the first of parts, which are b's first, then the others at the same time.
func (b *Bootstrap) run(ctx context.Context, parts []*Part) error {
	ctx = request.AsServer(ctx)
	var runs []func(context.Context) error
	for _, p := range parts {
		runs = append(runs, p.run)
	}
	if err := together(ctx, runs[:b.first]...); err != nil {
		return err
	}
	return together(ctx, runs[b.first:]...)
}

func (b *Bootstrap) namespaces(ctx context.Context) error {
	var all []func(context.Context) error
	for _, name := range []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease,
		metav1.NamespaceDefault} {
		all = append(all, func(ctx context.Context) error {
			return b.ensure(ctx, corev1.Resource("namespaces"),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil)
		})
	}
	return together(ctx, all...)
}

// together calls all at the same time and waits for them. It returns every error.
func together(ctx context.Context, all ...func(context.Context) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, f := range all {
		wg.Go(func() { errs[i] = f(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ensure creates want unless there is an object of its name. An existing one is given to fix, which changes it and
// reports whether it did; nil leaves it as it is.
func (b *Bootstrap) ensure(ctx context.Context, gr schema.GroupResource, want runtime.Object,
	fix func(have runtime.Object) (bool, error)) error {
	m, err := meta.Accessor(want)
	if err != nil {
		return err
	}
	store := b.cfg.Stores.Store(gr)
	if store == nil {
		return fmt.Errorf("making %s %s/%s: the resource is not served", gr, m.GetNamespace(), m.GetName())
	}
	have, err := store.GetCached(ctx, m.GetNamespace(), m.GetName())
	if apierrors.IsNotFound(err) {
		_, err = store.Create(ctx, m.GetNamespace(), want, &metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return wrap(err, "making", gr, m)
		}
		have, err = store.Get(ctx, m.GetNamespace(), m.GetName())
	}
	if err != nil {
		return wrap(err, "reading", gr, m)
	}
	if fix == nil {
		return nil
	}
	if changed, err := fix(have.DeepCopyObject()); err != nil || !changed {
		return wrap(err, "comparing", gr, m)
	}
	_, err = store.Update(ctx, m.GetNamespace(), m.GetName(), "", func(current runtime.Object) (runtime.Object, error) {
		_, err := fix(current)
		return current, err
	}, &metav1.UpdateOptions{})
	return wrap(err, "updating", gr, m)
}

func wrap(err error, verb string, gr schema.GroupResource, m metav1.Object) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %s/%s: %w", verb, gr, m.GetNamespace(), m.GetName(), err)
}
