package serviceip

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/request"
)

const (
	// repairEvery is how often services and addresses are compared.
	repairEvery = 3 * time.Minute
	// retryAfter is how soon a comparison that failed is tried again.
	retryAfter = 5 * time.Second
	// leakAge is how old an address without a service must be: it is made before its service is stored.
	leakAge = time.Minute
)

// repairs is what makes addresses agree with services.
type repairs struct {
	// missing are addresses that services have, by which nobody has an object.
	missing []*networkingv1.IPAddress
	// leaked are addresses whose service does not have them.
	leaked []*networkingv1.IPAddress
	// conflicts say which services have an address that is another's: only who runs the cluster can mend that.
	conflicts []string
	// again is when an address will be old enough to have leaked, zero for never.
	again time.Time
}

// compare finds what is to be repaired. It is pure.
func compare(services []*corev1.Service, addresses []*networkingv1.IPAddress, now time.Time) repairs {
	var r repairs
	byName := map[string]*networkingv1.IPAddress{}
	for _, a := range addresses {
		byName[a.Name] = a
	}
	held := map[string]bool{} // addresses that the service has which their object names
	for _, svc := range services {
		for _, ip := range holdingsOf(svc).ips {
			a, ok := byName[ip.String()]
			switch {
			case !ok:
				a = addressOf(ip, svc.Namespace, svc.Name)
				r.missing, byName[ip.String()] = append(r.missing, a), a
				held[a.Name] = true
			case refersTo(a, svc.Namespace, svc.Name):
				held[a.Name] = true
			default:
				r.conflicts = append(r.conflicts, fmt.Sprintf("%s of %s/%s", ip, svc.Namespace, svc.Name))
			}
		}
	}
	for _, a := range addresses {
		if a.Labels[networkingv1.LabelManagedBy] != managedBy || held[a.Name] || a.DeletionTimestamp != nil {
			continue
		}
		if old := a.CreationTimestamp.Add(leakAge); now.Before(old) {
			if r.again.IsZero() || old.Before(r.again) {
				r.again = old
			}
			continue
		}
		r.leaked = append(r.leaked, a)
	}
	return r
}

// Repair compares services with the objects of their addresses and with the taken node ports until ctx ends, and mends
// what a server left behind that died between two writes, or somebody deleted.
func (a *Allocator) Repair(ctx context.Context) error {
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		again, err := a.repair(request.AsServer(ctx))
		switch {
		case err != nil && ctx.Err() == nil:
			a.log.Warn("service IPs and node ports are not repaired", "err", err, "retry", retryAfter)
			wait = retryAfter
		case !again.IsZero():
			wait = min(repairEvery, max(retryAfter, again.Sub(a.now())))
		default:
			wait = repairEvery
		}
	}
}

// repair does so once; it returns when there may be more to do, zero for never.
func (a *Allocator) repair(ctx context.Context) (time.Time, error) {
	addresses := a.stores.Store(networkingv1.Resource("ipaddresses"))
	if addresses == nil {
		return a.now().Add(retryAfter), nil // the server is still being put together
	}
	// Addresses before services: an address whose service is stored in between is not taken for leaked.
	had, err := addresses.List(ctx, "", "")
	if err != nil {
		return time.Time{}, fmt.Errorf("reading addresses: %w", err)
	}
	services, err := a.services(ctx)
	if err != nil {
		return time.Time{}, err
	}
	r := compare(services, typed[*networkingv1.IPAddress](had), a.now())
	for _, c := range r.conflicts {
		a.log.Warn("a service has the address of another; please recreate it", "conflict", c)
	}
	for _, m := range r.missing {
		if err := a.makeMissing(ctx, m); err != nil {
			return time.Time{}, err
		}
	}
	for _, l := range r.leaked {
		_, _, err := addresses.Delete(ctx, "", l.Name,
			&metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(l.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return time.Time{}, fmt.Errorf("deleting the leaked address %s: %w", l.Name, err)
		}
		a.log.Info("a leaked service IP is given back", "address", l.Name)
		if ip, err := netip.ParseAddr(l.Name); err == nil {
			a.unmark(ip)
		}
	}
	leaks, again, err := a.ports.repair(ctx, a.now())
	if err != nil {
		return time.Time{}, err
	}
	if len(leaks) > 0 {
		a.log.Info("leaked node ports are given back", "ports", leaks)
	}
	for _, c := range a.ports.shared(services) {
		a.log.Warn("a service has the node port of another; please recreate it", "conflict", c)
	}
	if r.again.IsZero() || !again.IsZero() && again.Before(r.again) {
		return again, nil
	}
	return r.again, nil
}

// makeMissing makes the object of an address, if its service still has it: the list may be older than a deletion.
func (a *Allocator) makeMissing(ctx context.Context, m *networkingv1.IPAddress) error {
	p := m.Spec.ParentRef
	obj, err := a.stores.Store(corev1.Resource("services")).Get(ctx, p.Namespace, p.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading service %s/%s: %w", p.Namespace, p.Name, err)
	}
	svc, ok := obj.(*corev1.Service)
	if !ok || !slices.ContainsFunc(holdingsOf(svc).ips, func(ip netip.Addr) bool { return ip.String() == m.Name }) {
		return nil
	}
	_, err = a.stores.Store(networkingv1.Resource("ipaddresses")).Create(ctx, "", m,
		&metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the address %s: %w", m.Name, err)
	}
	a.log.Info("a service IP had no object", "address", m.Name, "service", p.Namespace+"/"+p.Name)
	return nil
}

// typed are those of objs that are Ts, which are all.
func typed[T runtime.Object](objs []runtime.Object) []T {
	out := make([]T, 0, len(objs))
	for _, o := range objs {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}
