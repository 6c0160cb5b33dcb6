package serviceip

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

const (
	// DefaultCIDR is the ServiceCIDR of --service-cluster-ip-range.
	DefaultCIDR = "kubernetes"
	// managedBy is the value of the label by which the addresses that are made here are known.
	managedBy = "ipallocator.k8s.io"
	// fieldManager is who has set the fields of those.
	fieldManager = "kube-apiserver"
	// releaseTimeout bounds the giving back of what one service held, which the request that it is a part of may not
	// wait for.
	releaseTimeout = 10 * time.Second
)

// blocks are the ranges of a family that addresses can be taken of, the default one first.
func (a *Allocator) blocks(ctx context.Context, family corev1.IPFamily) ([]block, error) {
	objs, err := a.stores.Store(networkingv1.Resource("servicecidrs")).List(ctx, "", "")
	if err != nil {
		return nil, fmt.Errorf("reading the ranges of service IPs: %w", err)
	}
	var usable []*networkingv1.ServiceCIDR
	for _, obj := range objs {
		if c, ok := obj.(*networkingv1.ServiceCIDR); ok && ready(c) {
			usable = append(usable, c)
		}
	}
	slices.SortFunc(usable, func(x, y *networkingv1.ServiceCIDR) int {
		return cmp.Or(-cmp.Compare(rank(x), rank(y)), cmp.Compare(x.Name, y.Name))
	})
	var out []block
	for _, c := range usable {
		for _, text := range c.Spec.CIDRs {
			if p, err := netip.ParsePrefix(text); err == nil && familyOf(p.Addr()) == family {
				if b, err := newBlock(p); err == nil { // one that is too small has no address to give
					out = append(out, b)
				}
			}
		}
	}
	return out, nil
}

func rank(c *networkingv1.ServiceCIDR) int {
	if c.Name == DefaultCIDR {
		return 1
	}
	return 0
}

// ready reports whether addresses can be taken of a range. One that nobody has judged yet can be used.
func ready(c *networkingv1.ServiceCIDR) bool {
	r := meta.FindStatusCondition(c.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	return c.DeletionTimestamp == nil && (r == nil || r.Status == metav1.ConditionTrue)
}

// address takes the address that a client chose.
func (t *taking) address(ctx context.Context, ip netip.Addr) error {
	if slices.Contains(t.had.ips, ip) {
		return nil
	}
	blocks, err := t.a.blocks(ctx, familyOf(ip))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(blocks, func(b block) bool { return b.contains(ip) }) {
		if t.dryRun && len(blocks) > 0 { // for which Kubernetes has other words
			return fmt.Errorf("the provided IP (%s) is not in the valid range. The range of valid IPs is %s", ip,
				blocks[0].prefix)
		}
		return errRange
	}
	return t.claim(ctx, ip)
}

// anyAddress takes a free address of a family. Where all seem to be taken it looks again what is: others give addresses
// back, too.
//
// Two looks bound it. Each address that another server took first is marked in memory, so no address is tried twice
// in one look.
func (t *taking) anyAddress(ctx context.Context, family corev1.IPFamily) (netip.Addr, error) {
	blocks, err := t.a.blocks(ctx, family)
	if err != nil {
		return netip.Addr{}, err
	}
	for range 2 {
		for i := range blocks {
			for {
				ip, ok := t.a.pick(&blocks[i])
				if !ok {
					break
				}
				err := t.claim(ctx, ip)
				if err == nil {
					return ip, nil
				}
				if err != errTaken { //nolint:errorlint // claim returns it as it is
					t.a.unmark(ip)
					return netip.Addr{}, err
				}
			}
		}
		if err := t.a.reload(ctx); err != nil {
			return netip.Addr{}, err
		}
	}
	return netip.Addr{}, errFull
}

// pick marks a free address of b, for which nobody else on this server tries then. The lock covers choice and mark, not
// the write that follows. Other servers may pick the same one: the name of the IPAddress decides (claim).
func (a *Allocator) pick(b *block) (netip.Addr, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ip, ok := b.next(a.random, a.used)
	if ok {
		a.used[ip] = struct{}{}
	}
	return ip, ok
}

func (a *Allocator) unmark(ip netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.used, ip)
}

// reload marks the addresses that services or objects have, and no others. It reads without the lock. A mark that
// another request made meanwhile is lost, which costs that address one more try: the object is what reserves it.
func (a *Allocator) reload(ctx context.Context) error {
	objs, err := a.stores.Store(networkingv1.Resource("ipaddresses")).List(ctx, "", "")
	if err != nil {
		return fmt.Errorf("reading which service IPs are taken: %w", err)
	}
	services, err := a.services(ctx)
	if err != nil {
		return err
	}
	used := make(map[netip.Addr]struct{}, len(objs))
	for _, o := range typed[*networkingv1.IPAddress](objs) {
		if ip, err := netip.ParseAddr(o.Name); err == nil {
			used[ip] = struct{}{}
		}
	}
	for _, svc := range services {
		for _, ip := range holdingsOf(svc).ips {
			used[ip] = struct{}{}
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used = used
	return nil
}

// claim makes the object that says who has ip; errTaken if there is one. A dry run only looks for one. The server makes
// the object in its own name: a client that may create services need not have the right to create addresses.
func (t *taking) claim(ctx context.Context, ip netip.Addr) error {
	store := t.a.stores.Store(networkingv1.Resource("ipaddresses"))
	if t.dryRun {
		switch _, err := store.GetCached(ctx, "", ip.String()); {
		case err == nil:
			return errTaken
		case !apierrors.IsNotFound(err):
			return err
		}
		t.got.ips = append(t.got.ips, ip)
		return nil
	}
	_, err := store.Create(request.AsServer(ctx), "", addressOf(ip, t.svc.Namespace, t.svc.Name),
		&metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		return errTaken
	}
	if err == nil {
		t.got.ips = append(t.got.ips, ip)
	}
	return err
}

// addressOf is the object that says that a service has ip.
func addressOf(ip netip.Addr, namespace, name string) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: ip.String(), Labels: map[string]string{
			networkingv1.LabelIPAddressFamily: string(familyOf(ip)), networkingv1.LabelManagedBy: managedBy,
		}},
		Spec: networkingv1.IPAddressSpec{
			ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: namespace, Name: name}},
	}
}

// release deletes the object of an address that svc has no longer. The UID keeps it from deleting an object that
// another service made under this name meanwhile. If it fails, the address stays marked and its object stays, until
// Repair finds that no service has it.
func (a *Allocator) release(ctx context.Context, svc *corev1.Service, ip netip.Addr) {
	store := a.stores.Store(networkingv1.Resource("ipaddresses"))
	has, err := registry.Find[*networkingv1.IPAddress](ctx, store, "", ip.String())
	if err == nil {
		if !refersTo(has, svc.Namespace, svc.Name) {
			return // somebody else's
		}
		_, _, err = store.Delete(request.AsServer(ctx), "", has.Name,
			&metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(has.UID))})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		a.log.Warn("a service IP is not given back yet", "address", ip, "service", svc.Namespace+"/"+svc.Name, "err",
			err)
		return
	}
	a.unmark(ip)
}

// refersTo reports whether an address is that of a service.
func refersTo(a *networkingv1.IPAddress, namespace, name string) bool {
	p := a.Spec.ParentRef
	return p != nil && p.Group == "" && p.Resource == "services" && p.Namespace == namespace && p.Name == name
}
