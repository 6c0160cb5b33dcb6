// Package resourcequota is the admission plug-in ResourceQuota: what is created, or grows, in a namespace is charged to
// the namespace's quotas before it is stored, and refused if one of them would be exceeded.
//
// A quota is charged by writing its status, if nobody else has written it meanwhile: of several servers and requests
// none can use the same rest twice. What is charged and then not stored after all is given back by the controller's
// next recount. A quota bounds nothing until the controller has written its first status.
package resourcequota

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"bonsai/api/quota"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
)

// Quotas reads and writes resource quotas; the registry.Store of them is one. List has what a client was told to be
// stored.
type Quotas interface {
	Get(ctx context.Context, ns, name string) (runtime.Object, error)
	List(ctx context.Context, ns, labelSelector string) ([]runtime.Object, error)
	Update(ctx context.Context, ns, name, subresource string,
		change func(current runtime.Object) (runtime.Object, error), opts *metav1.UpdateOptions) (runtime.Object, error)
}

type plugin struct {
	quotas Quotas
	// classes and pods are the DeviceClasses and Pods.
	classes, pods registry.Getter
	limited       []Limited
	now           func() time.Time
	desks         desks
}

// New returns the plug-in; now is the clock. Of what is limited nothing may be used that no quota bounds.
func New(quotas Quotas, classes, pods registry.Getter, limited []Limited, now func() time.Time) admission.Plugin {
	return admission.Plugin{Name: "ResourceQuota",
		Validator: &plugin{quotas: quotas, classes: classes, pods: pods, limited: limited, now: now}}
}

// Validate implements admission.Validator.
func (p *plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if !concerns(a) {
		return nil
	}
	quotas, err := p.list(ctx, a.Namespace)
	if err != nil || len(quotas) == 0 && len(p.limited) == 0 {
		return err
	}
	c := newClaim(a)
	if err := p.permitted(ctx, c, quotas); err != nil {
		return err
	}
	p.count(ctx, c)
	wanted := false
	for _, q := range quotas {
		names := c.bounds(q)
		if c.updates() && len(c.wants(q)) == 0 {
			continue // the update changes nothing that q counts
		}
		if err := c.countable(q, names); err != nil {
			return err
		}
		wanted = wanted || len(c.wants(q)) > 0
	}
	if !wanted {
		return nil
	}
	p.desks.queue(a.Namespace, c, func(batch []*claim) { p.settle(ctx, a.Namespace, batch) })
	return c.err
}

// concerns reports whether a may need more of something: every creation, and the updates that change what is counted.
func concerns(a *admission.Attributes) bool {
	gr := a.Resource.GroupResource()
	if a.Namespace == "" || a.Object == nil || quota.Ignored(gr) {
		return false
	}
	switch a.Operation {
	case admission.Create:
		return a.Subresource == "" && gr != corev1.Resource("namespaces")
	case admission.Update:
		switch {
		case a.Is(corev1.Resource("services")), a.Is(corev1.Resource("pods")), a.Is(corev1.Resource("pods/resize")):
			return true
		}
		return a.Is(corev1.Resource("persistentvolumeclaims")) || a.Is(corev1.Resource("persistentvolumeclaims/status"))
	}
	return false
}

// count finds out what the request uses; pods that are resized may need less than before, too.
func (p *plugin) count(ctx context.Context, c *claim) {
	if c.whole != nil {
		return
	}
	now, known := p.now(), p.known(ctx)
	c.whole = quota.Usage(c.resource, c.attributes.Object, now, known)
	c.delta = c.whole
	if c.updates() {
		c.delta = quota.Subtract(c.whole, quota.Usage(c.resource, c.attributes.OldObject, now, known))
	}
	for _, l := range []corev1.ResourceList{c.whole, c.delta} {
		for name, q := range l {
			if q.IsZero() || q.Sign() < 0 && c.attributes.Subresource != "resize" {
				delete(l, name)
			}
		}
	}
}

// known is what counts depend on beside the object. What cannot be read counts nothing: the controller's recount puts
// it right.
func (p *plugin) known(ctx context.Context) quota.Known {
	return quota.Known{
		Extended: func(name string) string {
			class, err := registry.Find[*resourcev1.DeviceClass](ctx, p.classes, "", name)
			if err != nil {
				return ""
			}
			return ptr.Deref(class.Spec.ExtendedResourceName, "")
		},
		Pod: func(namespace, name string) *corev1.Pod {
			pod, err := registry.Find[*corev1.Pod](ctx, p.pods, namespace, name)
			if err != nil {
				return nil
			}
			return pod
		},
	}
}

// stored tells an update from the creation by PUT.
func stored(old runtime.Object) bool {
	if old == nil {
		return false
	}
	m, err := meta.Accessor(old)
	return err == nil && m.GetResourceVersion() != ""
}

// list returns the quotas of a namespace.
func (p *plugin) list(ctx context.Context, ns string) ([]*corev1.ResourceQuota, error) {
	objs, err := p.quotas.List(ctx, ns, "")
	if err != nil {
		return nil, fmt.Errorf("listing the quotas of namespace %s: %w", ns, err)
	}
	out := make([]*corev1.ResourceQuota, 0, len(objs))
	for _, obj := range objs {
		q, ok := obj.(*corev1.ResourceQuota)
		if !ok {
			return nil, fmt.Errorf("listing the quotas of namespace %s: got a %T", ns, obj)
		}
		out = append(out, q)
	}
	return out, nil
}
