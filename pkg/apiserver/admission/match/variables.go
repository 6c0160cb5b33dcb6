package match

import (
	"context"

	"github.com/google/cel-go/common/types/ref"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/library"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/apiserver/admission"
)

// Variables are what expressions see: the objects in the asker's version, the request, and what its user may do. What
// of it is the same for all versions is made once. It is for the request's goroutine alone: views and authorizers are
// made at the first call without a lock.
func (r *Request) Variables(ctx context.Context, in Target) (*expression.Variables, error) {
	v, err := r.As(ctx, in)
	if err != nil {
		return nil, err
	}
	out := &expression.Variables{}
	if out.Object, err = v.Object.Content(); err != nil {
		return nil, err
	}
	if out.OldObject, err = v.Old.Content(); err != nil {
		return nil, err
	}
	if v.described == nil {
		described, err := r.Describe(in)
		if err != nil {
			return nil, err
		}
		described.Options = runtime.RawExtension{Object: r.A.Options}
		if v.described, err = runtime.DefaultUnstructuredConverter.ToUnstructured(described); err != nil {
			return nil, err
		}
	}
	out.Request = v.described
	if r.all == nil {
		r.all, r.own = r.authorizers()
	}
	out.Authorizer, out.RequestResource = r.all, r.own
	return out, nil
}

func (r *Request) authorizers() (all, own ref.Val) {
	user, may := caller(r.A.User), rights{r.Authorizer}
	return library.NewAuthorizerVal(user, may), library.NewResourceAuthorizerVal(user, may, requestResource{r.A})
}

// requestResource is what "authorizer.requestResource" is about.
type requestResource struct{ a *admission.Attributes }

func (r requestResource) GetName() string        { return r.a.Name }
func (r requestResource) GetNamespace() string   { return NamespaceOf(r.a) }
func (r requestResource) GetSubresource() string { return r.a.Subresource }
func (r requestResource) GetResource() schema.GroupVersionResource {
	if !r.a.RequestResource.Empty() {
		return r.a.RequestResource
	}
	return r.a.Resource
}

// NamespaceObject is the request's namespace as expressions see it, without what changes with every write: nil for what
// is in none, and for namespaces themselves.
func (r *Request) NamespaceObject(ctx context.Context) (map[string]any, error) {
	if r.A.Namespace == "" || aboutNamespace(r.A) {
		return nil, nil
	}
	if r.namespaceObject == nil {
		ns, err := r.namespace(ctx, r.A.Namespace)
		if err != nil {
			return nil, err
		}
		if r.namespaceObject, err = runtime.DefaultUnstructuredConverter.ToUnstructured(shown(ns)); err != nil {
			return nil, err
		}
	}
	return r.namespaceObject, nil
}

// shown returns the fields of a namespace that expressions may read. managedFields and ownerReferences are left out.
func shown(ns *corev1.Namespace) *corev1.Namespace {
	m := &ns.ObjectMeta
	return &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name, GenerateName: m.GenerateName, Namespace: m.Namespace,
			Labels: m.Labels, Annotations: m.Annotations, UID: m.UID,
			CreationTimestamp: m.CreationTimestamp, DeletionGracePeriodSeconds: m.DeletionGracePeriodSeconds,
			DeletionTimestamp: m.DeletionTimestamp,
			Generation:        m.Generation, ResourceVersion: m.ResourceVersion, Finalizers: m.Finalizers},
		Spec:   corev1.NamespaceSpec{Finalizers: ns.Spec.Finalizers},
		Status: corev1.NamespaceStatus{Phase: ns.Status.Phase},
	}
}
