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
	return &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{resourcev1.DRAAdminNamespaceLabelKey: label}}}, nil
}

func TestBeforeCreate(t *testing.T) {
	t.Parallel()
	h := New(stores{"admins": "true", "users": "True"})
	asks := func(admin bool) []resourcev1.DeviceRequest {
		return []resourcev1.DeviceRequest{{FirstAvailable: []resourcev1.DeviceSubRequest{{}}},
			{Exactly: &resourcev1.ExactDeviceRequest{AdminAccess: &admin}}}
	}
	for _, c := range []struct {
		namespace string
		admin     bool
		err       string
	}{
		{"users", false, ""}, {"gone", false, ""}, {"admins", true, ""}, {"gone", true, `namespaces "gone" not found`},
		{"users", true, "devices.requests[1].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"},
	} {
		meta, spec := metav1.ObjectMeta{Namespace: c.namespace, Name: "c"},
			resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: asks(c.admin)}}
		for path, obj := range map[string]runtime.Object{
			`ResourceClaim.resource.k8s.io "c" is invalid: spec.`: &resourcev1.ResourceClaim{ObjectMeta: meta,
				Spec: spec},
			`ResourceClaimTemplate.resource.k8s.io "c" is invalid: spec.`: &resourcev1.ResourceClaimTemplate{
				ObjectMeta: meta, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: spec}},
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

// TestStatus holds what the status may give to what kube-apiserver v1.36.3 answered.
func TestStatus(t *testing.T) {
	t.Parallel()
	h := New(stores{"admins": "true", "users": ""})
	claim := func(namespace string, results ...*bool) *resourcev1.ResourceClaim {
		c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}}
		if len(results) > 0 {
			c.Status.Allocation = &resourcev1.AllocationResult{}
		}
		for _, admin := range results {
			c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
				resourcev1.DeviceRequestAllocationResult{AdminAccess: admin})
		}
		return c
	}
	yes, no := true, false
	const forbidden = "status.allocation.devices.results[1].adminAccess: Forbidden: " + refusal
	for name, c := range map[string]struct {
		sub      string
		now, was *resourcev1.ResourceClaim
		want     string
	}{
		"marked":                   {"status", claim("admins", nil, &yes), claim("admins"), ""},
		"not marked":               {"status", claim("users", nil, &yes), claim("users"), forbidden},
		"not marked, was without":  {"status", claim("users", nil, &yes), claim("users", nil, &no), forbidden},
		"no administrative access": {"status", claim("users", nil, &no), claim("users"), ""},
		"marked when it was given": {"status", claim("users", nil, &yes), claim("users", nil, &yes), ""},
		"given back":               {"status", claim("users"), claim("users", nil, &yes), ""},
		"the claim itself":         {"", claim("users", nil, &yes), claim("users"), ""},
		"a namespace that is gone": {"status", claim("gone", &yes), claim("gone"),
			`status.allocation: Internal error: namespaces "gone" not found`},
		"gone, and nothing is given": {"status", claim("gone", nil), claim("gone"), ""},
	} {
		if errs := h.CheckUpdate(t.Context(), c.sub, c.now, c.was); (len(errs) == 0) != (c.want == "") ||
			len(errs) > 0 && errs[0].Error() != c.want {
			t.Errorf("%s: %v, want %q", name, errs, c.want)
		}
	}
}
