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

// BeforeUpdate keeps what the old service held where the client left it out, and reserves what the new one needs more. What
// it needs no longer is given back when the write is stored.
func (a *Allocator) BeforeUpdate(ctx context.Context, obj, old runtime.Object, dryRun bool) (func(committed bool), error) {
	svc, was := obj.(*corev1.Service), old.(*corev1.Service)
	dropStale(svc, was)
	keep(svc, was)
	return a.before(ctx, svc, was, dryRun)
}

func (a *Allocator) before(ctx context.Context, svc, old *corev1.Service, dryRun bool) (func(bool), error) {
	if errs := a.setFamilies(svc, old); len(errs) > 0 {
		return nil, invalid(svc, errs...)
	}
	if err := a.load(ctx); err != nil {
		return nil, err
	}
	t := &taking{a: a, svc: svc, dryRun: dryRun}
	if old != nil {
		t.had, t.wasHeadless = holdingsOf(old), isHeadless(old)
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
	// wasHeadless: a headless service gets no address, which validation says.
	wasHeadless bool
	// dryRun: no address is taken, got is only what would be.
	dryRun bool
}

// giveBack gives back what was taken.
func (t *taking) giveBack(ctx context.Context) {
	got := t.got
	if t.dryRun {
		for _, ip := range got.ips {
			t.a.unmark(ip)
		}
		got.ips = nil
	}
	t.a.free(ctx, t.svc, got)
}

func (t *taking) all(ctx context.Context) error {
	if needsIP(t.svc) && !t.wasHeadless {
		if err := t.addresses(ctx); err != nil {
			return err
		}
	}
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	if needsPorts(t.svc) {
		if err := t.nodePorts(t.svc); err != nil {
			return err
		}
	}
	if needsHealthPort(t.svc) {
		return t.healthPort(t.svc)
	}
	return nil
}

// addresses makes clusterIPs one for each family. One that a client chose stays as he wrote it.
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
			return invalid(svc, field.Invalid(field.NewPath("spec", "clusterIPs"), ips, fmt.Sprintf("failed to allocate IP %v: %v", ips[i], err)))
		}
	}
	for i, family := range svc.Spec.IPFamilies {
		if ips[i] != "" {
			continue
		}
		ip, err := t.anyAddress(ctx, family)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP: %w", err))
		}
		ips[i] = ip.String()
	}
	if len(ips) > 0 {
		svc.Spec.ClusterIPs, svc.Spec.ClusterIP = ips, ips[0]
	}
	return nil
}

// nodePorts gives each port its node port. Two ports of one service that differ only in protocol share one.
func (t *taking) nodePorts(svc *corev1.Service) error {
	type use struct {
		port     int32
		protocol corev1.Protocol
	}
	shared, used := map[int32]int32{}, map[use]bool{} // shared: port → node port
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		if p.NodePort != 0 {
			err := t.port(int(p.NodePort))
			if key := (use{p.NodePort, p.Protocol}); err == nil && used[key] {
				err = errPortTaken
			} else {
				used[key] = true
			}
			if err != nil {
				return invalid(svc, field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), p.NodePort, err.Error()))
			}
			shared[p.Port] = p.NodePort
		}
	}
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		if p.NodePort != 0 {
			continue
		}
		if n, ok := shared[p.Port]; ok && freeForProtocol(svc, n, p.Protocol) {
			p.NodePort = n
			continue
		}
		n, ok := t.a.ports.next(t.a.random)
		if !ok {
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate a nodePort: %w", errFull))
		}
		t.got.ports = append(t.got.ports, t.a.first+n)
		p.NodePort = int32(t.a.first + n)
		shared[p.Port] = p.NodePort
	}
	return nil
}

// freeForProtocol tells whether no port of svc uses node port n with the protocol yet.
func freeForProtocol(svc *corev1.Service, n int32, protocol corev1.Protocol) bool {
	for _, p := range svc.Spec.Ports {
		if p.NodePort == n && p.Protocol == protocol {
			return false
		}
	}
	return true
}

func (t *taking) port(n int) error {
	for _, h := range append(append([]int(nil), t.had.ports...), t.got.ports...) {
		if h == n {
			return nil
		}
	}
	if n < t.a.first || n > t.a.last {
		return fmt.Errorf("provided port is not in the valid range. The range of valid ports is %d-%d", t.a.first, t.a.last)
	}
	if !t.a.ports.take(n - t.a.first) {
		return errPortTaken
	}
	t.got.ports = append(t.got.ports, n)
	return nil
}

func (t *taking) healthPort(svc *corev1.Service) error {
	if n := svc.Spec.HealthCheckNodePort; n != 0 {
		if err := t.port(int(n)); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate requested HealthCheck NodePort %v: %w", n, err))
		}
		return nil
	}
	n, ok := t.a.ports.next(t.a.random)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("failed to allocate a HealthCheck NodePort %v: %w", svc.Spec.HealthCheckNodePort, errFull))
	}
	t.got.ports = append(t.got.ports, t.a.first+n)
	svc.Spec.HealthCheckNodePort = int32(t.a.first + n)
	return nil
}
