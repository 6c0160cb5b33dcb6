package serviceip

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// BeforeCreate fills in IP families, cluster IPs and node ports and reserves them.
func (a *Allocator) BeforeCreate(ctx context.Context, obj runtime.Object, dryRun bool) (func(committed bool), error) {
	return a.before(ctx, obj.(*corev1.Service), nil, dryRun)
}

// BeforeUpdate keeps what the old service held where the client left it out, and reserves what the new one needs more.
// What it needs no longer is given back when the write is stored; what the new type has no use for, the strategy has
// dropped before.
func (a *Allocator) BeforeUpdate(ctx context.Context, obj, old runtime.Object, dryRun bool) (func(committed bool),
	error) {
	svc, was := obj.(*corev1.Service), old.(*corev1.Service)
	carryOver(svc, was)
	return a.before(ctx, svc, was, dryRun)
}

// before is both hooks. It reserves before the service is stored: an address or a port must never be in two stored
// services. If this server dies in between, the reservation stays, and Repair frees it. done gives back what the
// outcome leaves unused: the new things if the write failed, the old ones if it succeeded.
//
// A dry run marks addresses only in memory and gives them back at once.
func (a *Allocator) before(ctx context.Context, svc, old *corev1.Service, dryRun bool) (func(bool), error) {
	if errs := a.setFamilies(svc, old); len(errs) > 0 {
		return nil, invalid(svc, errs...)
	}
	if err := a.load(ctx); err != nil {
		return nil, err
	}
	t := &taking{a: a, svc: svc, dryRun: dryRun, isNew: old == nil}
	if old != nil {
		t.had, t.wasHeadless, t.moves = holdingsOf(old), isHeadless(old), moves(svc, old)
	}
	if err := t.all(ctx); err != nil {
		t.giveBack(ctx)
		return nil, err
	}
	if dryRun {
		t.giveBack(ctx)
		return func(bool) {}, nil
	}
	now := holdingsOf(svc)
	return func(committed bool) {
		if committed {
			a.free(ctx, svc, t.had.without(now))
		} else {
			t.giveBack(ctx)
		}
	}, nil
}

func invalid(svc *corev1.Service, errs ...*field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, svc.Name, errs)
}

// taking is one reservation under way for svc: had is what it holds already, got what was taken newly.
type taking struct {
	a        *Allocator
	svc      *corev1.Service
	had, got holdings
	// isNew: there was no such service.
	isNew bool
	// wasHeadless: a headless service gets no address, which validation says.
	wasHeadless bool
	// moves: the first address may not change, which validation says; no other one is taken for it.
	moves bool
	// dryRun: nothing is taken, got is only what would be.
	dryRun bool
}

// giveBack gives back what was taken. It returns no error: what cannot be given back now stays reserved until Repair.
func (t *taking) giveBack(ctx context.Context) {
	if t.dryRun {
		for _, ip := range t.got.ips {
			t.a.unmark(ip)
		}
		return
	}
	t.a.free(ctx, t.svc, t.got)
}

// all takes the addresses, then the node ports. An error leaves in got what was taken by then, for giveBack.
func (t *taking) all(ctx context.Context) error {
	if needsIP(t.svc) && !t.wasHeadless && !t.moves {
		if err := t.addresses(ctx); err != nil {
			return err
		}
	}
	if hasNodePorts(t.svc) {
		return t.nodePorts(ctx)
	}
	return nil
}

// moves reports whether a client wants another first address than the service has.
func moves(svc, old *corev1.Service) bool {
	was, now := clusterIPs(old), clusterIPs(svc)
	return needsIP(old) && len(was) > 0 && was[0] != "" && len(now) > 0 && now[0] != "" && now[0] != was[0]
}

// addresses makes clusterIPs one for each family. One that a client chose stays as he wrote it. Chosen ones come first:
// they can fail, and a free one taken before could be the one that the client wants. After an error, before gives back
// what was taken so far.
func (t *taking) addresses(ctx context.Context) error {
	svc := t.svc
	ips := make([]string, len(svc.Spec.IPFamilies))
	copy(ips, clusterIPs(svc))
	for i, family := range svc.Spec.IPFamilies {
		if ips[i] == "" {
			continue
		}
		ip, err := netip.ParseAddr(ips[i])
		if err != nil || familyOf(ip) != family {
			return nil // validation says what is wrong with it
		}
		if err := t.address(ctx, ip); err != nil {
			return invalid(svc, field.Invalid(field.NewPath("spec", "clusterIPs"), ips,
				fmt.Sprintf("failed to allocate IP %v: %v", ips[i], err)))
		}
	}
	for i, family := range svc.Spec.IPFamilies {
		if ips[i] != "" {
			continue
		}
		ip, err := t.anyAddress(ctx, family)
		if apierrors.IsInvalid(err) { // the service's name cannot be that of an IPAddress's parent
			return invalid(svc, field.Invalid(field.NewPath("spec", "clusterIPs"), ips,
				fmt.Sprintf("failed to allocate IP: %v", err)))
		}
		if err != nil {
			return apierrors.NewInternalError(
				fmt.Errorf("failed to allocate a serviceIP for Service %q: %w", svc.Name, err))
		}
		ips[i] = ip.String()
	}
	if len(ips) > 0 {
		svc.Spec.ClusterIPs, svc.Spec.ClusterIP = ips, ips[0]
	}
	return nil
}
