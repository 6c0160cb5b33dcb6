package servicecidr

import (
	"net/netip"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// finalizer keeps a range that is deleted while services have addresses of it.
	finalizer = "networking.k8s.io/service-cidr-finalizer"
	// grace is how long a deleted range stays although no address of it is in use: an API server that has not seen the
	// deletion yet may still assign one.
	grace = 10 * time.Second
)

// action is what is to be done to a range.
type action struct {
	// finalizers are those that it is to have; nil: as it is.
	finalizers *[]string
	// conditions are those that it is to have; nil: as it is.
	conditions []metav1.Condition
	// after is when to look again, 0 for when something changes.
	after time.Duration
}

// decide is pure. others are all ranges; held are the addresses that somebody has.
func decide(c *networkingv1.ServiceCIDR, others []*networkingv1.ServiceCIDR, held []string, now time.Time) action {
	if c.DeletionTimestamp == nil {
		a := action{conditions: withReady(c, metav1.ConditionTrue, "", "Kubernetes Service CIDR is ready", now)}
		if !slices.Contains(c.Finalizers, finalizer) {
			a.finalizers = new(append(slices.Clone(c.Finalizers), finalizer))
		}
		return a
	}
	if !slices.Contains(c.Finalizers, finalizer) {
		return action{}
	}
	if inUse(c, others, held) {
		return action{conditions: withReady(c, metav1.ConditionFalse, networkingv1.ServiceCIDRReasonTerminating,
			"There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
			now)}
	}
	if left := c.DeletionTimestamp.Add(grace).Sub(now); left > 0 {
		return action{after: left}
	}
	return action{finalizers: new(slices.DeleteFunc(slices.Clone(c.Finalizers), func(f string) bool {
		return f == finalizer
	}))}
}

// withReady are the conditions of c with another Ready; nil if it is so already.
func withReady(c *networkingv1.ServiceCIDR, status metav1.ConditionStatus, reason, message string,
	now time.Time) []metav1.Condition {
	list := slices.Clone(c.Status.Conditions)
	if !meta.SetStatusCondition(&list,
		metav1.Condition{Type: networkingv1.ServiceCIDRConditionReady, Status: status, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(now)}) {
		return nil
	}
	return list
}

// inUse reports whether somebody has an address of c that no other range has which stays.
func inUse(c *networkingv1.ServiceCIDR, others []*networkingv1.ServiceCIDR, held []string) bool {
	own := prefixes(c)
	var staying []netip.Prefix
	for _, o := range others {
		if o.UID != c.UID && o.DeletionTimestamp == nil {
			staying = append(staying, prefixes(o)...)
		}
	}
	has := func(list []netip.Prefix, ip netip.Addr) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(ip) })
	}
	return slices.ContainsFunc(held, func(name string) bool {
		ip, err := netip.ParseAddr(name)
		return err == nil && has(own, ip) && !has(staying, ip)
	})
}

func prefixes(c *networkingv1.ServiceCIDR) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range c.Spec.CIDRs {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}
