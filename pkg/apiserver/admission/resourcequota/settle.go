package resourcequota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/quota"
	"bonsai/pkg/apiserver/request"
)

// patience is how long the claims of one batch may take.
const patience = 10 * time.Second

// settle decides on the claims of one namespace, in their order, and charges those that are granted. desks.queue calls
// it on the goroutine of the request that leads the batch, one call per namespace at a time. Each claim has an err
// before anything can panic: a claim that was not decided must not pass as granted.
func (p *plugin) settle(ctx context.Context, ns string, batch []*claim) {
	// The batch is not for the one request alone that happens to lead it, and the quota is not written by its user.
	ctx = request.AsServer(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, c := range batch {
		c.err = errors.New("the quotas were not checked")
	}
	if err := p.grant(ctx, ns, batch); err != nil {
		for _, c := range batch {
			c.err = err
		}
	}
}

// grant decides first on the quotas as the server's cache shows them, and reads the store only after a refusal. So a
// request that fits costs no read, and one that is refused is refused by the newest state. An error refuses the whole
// batch. Quotas that were charged before it stay charged until the controller's recount, because several objects cannot
// be written in one transaction.
func (p *plugin) grant(ctx context.Context, ns string, batch []*claim) error {
	quotas, err := p.list(ctx, ns)
	if err != nil {
		return err
	}
	if refused := decide(quotas, batch); refused { // perhaps only for want of the newest state
		if quotas, err = p.newest(ctx, quotas); err != nil {
			return err
		}
		decide(quotas, batch)
	}
	granted := slices.DeleteFunc(slices.Clone(batch), func(c *claim) bool {
		return c.err != nil || c.attributes.DryRun
	})
	for _, q := range quotas {
		if err := p.charge(ctx, q, granted); err != nil {
			return err
		}
	}
	return nil
}

// decide sets the outcome of each claim as if all quotas stayed as they are given, so that no quota is charged for what
// another one refuses. It reports whether a claim was refused. A claim that one quota refuses leaves used as it was, so
// that later and smaller claims of the batch still get what is left. Dry runs are decided and take nothing. decide
// starts from nothing each time, and grant may call it twice.
func decide(quotas []*corev1.ResourceQuota, batch []*claim) (refused bool) {
	used := make([]corev1.ResourceList, len(quotas))
	for i, q := range quotas {
		used[i] = quota.Add(nil, q.Status.Used)
	}
	for _, c := range batch {
		after := slices.Clone(used)
		c.err = nil
		for i, q := range quotas {
			after[i] = quota.Add(nil, used[i])
			if c.err = c.charge(q, after[i]); c.err != nil {
				refused = true
				break
			}
		}
		if c.err == nil && !c.attributes.DryRun {
			used = after
		}
	}
	return refused
}

// newest reads the quotas once more, past every cache. Those that are gone bound nothing.
func (p *plugin) newest(ctx context.Context, quotas []*corev1.ResourceQuota) ([]*corev1.ResourceQuota, error) {
	var out []*corev1.ResourceQuota
	for _, old := range quotas {
		obj, err := p.quotas.Get(ctx, old.Namespace, old.Name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading quota %s/%s: %w", old.Namespace, old.Name, err)
		}
		q, ok := obj.(*corev1.ResourceQuota)
		if !ok {
			return nil, fmt.Errorf("reading quota %s/%s: got a %T", old.Namespace, old.Name, obj)
		}
		out = append(out, q)
	}
	return out, nil
}

// errNothing ends the write of a quota that no claim changes. It is a Status, which a store hands through as it is.
var errNothing = apierrors.NewBadRequest("nothing to charge")

// charge adds the claims that are still granted to what q has used, and refuses those that do not fit any more. The
// function that Update gets may run several times, after conflicts with other servers or the controller. So it collects
// into outcome and resets it first; the claims' err change once, after the write. A claim may fail here although decide
// granted it, because another server was quicker. Quotas that were charged before this one are then too high until the
// recount, which is the safe direction.
func (p *plugin) charge(ctx context.Context, q *corev1.ResourceQuota, claims []*claim) error {
	if !slices.ContainsFunc(claims, func(c *claim) bool { return c.err == nil && len(c.wants(q)) > 0 }) {
		return nil
	}
	var outcome []error
	_, err := p.quotas.Update(ctx, q.Namespace, q.Name, "status", func(current runtime.Object) (runtime.Object, error) {
		now, ok := current.(*corev1.ResourceQuota)
		if !ok {
			return nil, fmt.Errorf("got a %T", current)
		}
		used := quota.Add(nil, now.Status.Used)
		outcome = make([]error, len(claims))
		for i, c := range claims {
			if c.err == nil {
				outcome[i] = c.charge(now, used)
			}
		}
		if quota.Equal(used, now.Status.Used) {
			return nil, errNothing
		}
		now.Status.Used = used
		return now, nil
	}, &metav1.UpdateOptions{FieldManager: "kube-apiserver"}) // no matter whose request it charges for
	switch {
	case apierrors.IsNotFound(err): // what is gone bounds nothing
		return nil
	case err != nil && !errors.Is(err, errNothing):
		return fmt.Errorf("charging quota %s/%s: %w", q.Namespace, q.Name, err)
	}
	for i, c := range claims {
		if c.err == nil {
			c.err = outcome[i]
		}
	}
	return nil
}

func joined(names []corev1.ResourceName) string {
	words := make([]string, len(names))
	for i, n := range names {
		words[i] = string(n)
	}
	return strings.Join(words, ",")
}
