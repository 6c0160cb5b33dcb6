package aggregator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/api/apiregistration"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/request"
)

// manager is who owns the fields that are written here, as with upstream.
const manager = "kube-apiserver"

// asServer makes the API server itself the user of what is done with the context.
func asServer(ctx context.Context) context.Context {
	return request.WithUser(ctx,
		&request.User{Name: "system:apiserver", Groups: []string{request.GroupMasters, request.GroupAuthenticated}})
}

// errSettled ends an update that would change nothing. It is a Status error, which stores hand on as it is.
var errSettled error = apierrors.NewConflict(APIServices(), "", errors.New("it is as it should be"))

// settle writes the condition of an APIService, if is has another. It tries on a copy first: most calls change nothing,
// and must not cost a write. The update then looks at the stored object once more. If that is another one by now (its
// UID), or changed between local and remote, the condition is about something that is gone, and is not written.
func (a *Aggregator) settle(ctx context.Context, is *v1.APIService, condition v1.APIServiceCondition) error {
	if !apiregistration.SetCondition(is.DeepCopy(), condition, a.cfg.Now()) {
		return nil
	}
	lost := false
	_, err := a.cfg.Store.Update(asServer(ctx), "", is.Name, "status",
		func(obj runtime.Object) (runtime.Object, error) {
			s, ok := obj.(*v1.APIService)
			// Set at every try, since a conflict runs the function again with a newer object.
			lost = ok && apiregistration.IsAvailable(s) && condition.Status == v1.ConditionFalse
			if !ok || s.UID != is.UID || (s.Spec.Service == nil) != (is.Spec.Service == nil) ||
				!apiregistration.SetCondition(s, condition, a.cfg.Now()) {
				return nil, errSettled
			}
			return s, nil
		}, &metav1.UpdateOptions{FieldManager: manager})
	switch {
	case errors.Is(err, errSettled), apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	if lost || apiregistration.Condition(is) == nil && condition.Status == v1.ConditionFalse {
		a.metrics.lost.WithLabelValues(is.Name, condition.Reason).Inc()
	}
	return nil
}

// retryAfter is how long after a failure registration is tried again.
const retryAfter = time.Second

// register keeps the APIServices of what this server serves itself until ctx ends. It waits for the follower first:
// before that, every APIService would seem to be missing and be created. It reads served and known before it acts, so a
// change during step ends the wait at once. A failure is tried again after retryAfter, by all of step; what is done
// already changes nothing.
func (a *Aggregator) register(ctx context.Context) error {
	select {
	case <-a.follower.Synced():
	case <-ctx.Done():
		return nil
	}
	settled, starting := map[string]bool{}, true
	for {
		served, known := a.cfg.Catalog.Snapshot(), a.Index() // before what is known is read
		complete := a.complete()
		wait := (<-chan time.Time)(nil)
		if err := a.step(ctx, served, settled, complete, starting); err != nil && ctx.Err() == nil {
			a.cfg.Log.Warn("what is served cannot be registered", "err", err, "retry", retryAfter)
			wait = time.After(retryAfter)
		} else if starting && complete {
			starting = false
			close(a.done)
		}
		var completes <-chan struct{}
		if !complete {
			completes = a.cfg.Complete
		}
		select {
		case <-ctx.Done():
			return nil
		case <-served.Over():
		case <-known.over:
		case <-completes:
		case <-wait:
		}
	}
}

func (a *Aggregator) complete() bool {
	select {
	case <-a.cfg.Complete:
		return true
	default:
		return false
	}
}

// maxWrites is how many writes of registrations are under way at a time.
const maxWrites = 16

// step does what is to be done by now. Only register's goroutine calls it, so settled needs no lock. settled grows only
// after everything has succeeded: a name that failed counts as new at the next try.
func (a *Aggregator) step(ctx context.Context, served *catalog.Snapshot, settled map[string]bool, complete,
	starting bool) error {
	a.mu.Lock()
	have := maps.Clone(a.known)
	a.mu.Unlock()
	wanted := registrations(served)
	var group errgroup.Group
	group.SetLimit(maxWrites)
	for _, c := range changes(wanted, have, settled, complete, starting) {
		group.Go(func() error { return a.apply(ctx, c, wanted[c.name]) })
	}
	for _, s := range have {
		if s.Spec.Service == nil {
			group.Go(func() error { return a.settle(ctx, s, apiregistration.Local()) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for name := range wanted {
		settled[name] = true
	}
	return nil
}

// apply does one change. That another server was quicker is as good. Several servers register the same groups. So
// "exists already" and "not found" are success. An update that meets an object without the label automanaged leaves it
// alone: an administrator has taken it over.
func (a *Aggregator) apply(ctx context.Context, c change, w registration) error {
	ctx = asServer(ctx)
	var err error
	switch c.verb {
	case create:
		s := &v1.APIService{ObjectMeta: metav1.ObjectMeta{Name: c.name,
			Labels: map[string]string{automanaged: w.manage}}, Spec: w.spec}
		if _, err = a.cfg.Store.Create(ctx, "", s,
			&metav1.CreateOptions{FieldManager: manager}); apierrors.IsAlreadyExists(err) {
			return nil
		}
	case update:
		_, err = a.cfg.Store.Update(ctx, "", c.name, "", func(obj runtime.Object) (runtime.Object, error) {
			s, ok := obj.(*v1.APIService)
			if !ok || s.Labels[automanaged] == "" {
				return nil, errSettled
			}
			s.Labels[automanaged], s.Spec = w.manage, w.spec
			return s, nil
		}, &metav1.UpdateOptions{FieldManager: manager})
	case remove:
		_, _, err = a.cfg.Store.Delete(ctx, "", c.name, &metav1.DeleteOptions{})
	}
	if err == nil || apierrors.IsNotFound(err) || errors.Is(err, errSettled) {
		return nil
	}
	return fmt.Errorf("the APIService %s: %w", c.name, err)
}
