package adminaccess

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/registry"
)

// stores has namespaces, with the value of their label, and nothing else.
type stores map[string]string

func (s stores) Store(gr schema.GroupResource) registry.Store {
	if gr != corev1.Resource("namespaces") {
		return nil
	}
	return namespaces{labels: s}
}

type namespaces struct {
	registry.Store // the rest is not called
	labels         stores
}

func (n namespaces) Get(_ context.Context, _, name string) (runtime.Object, error) {
	label, ok := n.labels[name]
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{resourcev1.DRAAdminNamespaceLabelKey: label}}}, nil
}

func TestBeforeCreate(t *testing.T) {
	t.Parallel()
	h := New(stores{"admins": "true", "users": "True"})
	asks := func(admin bool) []resourcev1.DeviceRequest {
		return []resourcev1.DeviceRequest{{FirstAvailable: []resourcev1.DeviceSubRequest{{}}}, {Exactly: &resourcev1.ExactDeviceRequest{AdminAccess: &admin}}}
	}
	for _, c := range []struct {
		namespace string
		admin     bool
		err       string
	}{
		{"users", false, ""}, {"gone", false, ""}, {"admins", true, ""}, {"gone", true, `namespaces "gone" not found`},
		{"users", true, "devices.requests[1].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"},
	} {
		meta, spec := metav1.ObjectMeta{Namespace: c.namespace, Name: "c"}, resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: asks(c.admin)}}
		for path, obj := range map[string]runtime.Object{
			`ResourceClaim.resource.k8s.io "c" is invalid: spec.`:         &resourcev1.ResourceClaim{ObjectMeta: meta, Spec: spec},
			`ResourceClaimTemplate.resource.k8s.io "c" is invalid: spec.`: &resourcev1.ResourceClaimTemplate{ObjectMeta: meta, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: spec}},
		} {
			want := c.err
			if strings.HasPrefix(want, "devices") {
				want = path + want
			}
			done, err := h.BeforeCreate(t.Context(), obj, false)
			if err == nil && (want != "" || done == nil) || err != nil && err.Error() != want {
				t.Errorf("%+v: %v, want %q", c, err, want)
			}
		}
	}
}
