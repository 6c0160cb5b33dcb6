package core

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestValidateExtendedClaim: what kube-apiserver 1.36.3 says of the same status of a pod.
func TestValidateExtendedClaim(t *testing.T) {
	t.Parallel()
	const gpu, request = "example.com/gpu", "container-0-request-0"
	spec := &corev1.PodSpec{InitContainers: []corev1.Container{{Name: "i0"}},
		Containers: []corev1.Container{{Name: "c0",
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{gpu: resource.MustParse("1"), "cpu": resource.MustParse("1")}}}}}
	m := func(container, resource, request string) corev1.ContainerExtendedResourceRequest {
		return corev1.ContainerExtendedResourceRequest{ContainerName: container, ResourceName: resource,
			RequestName: request}
	}
	one := m("c0", gpu, request)
	const label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
	for _, c := range []struct {
		name     string
		claim    string
		mappings []corev1.ContainerExtendedResourceRequest
		want     []string
	}{
		{"fine", "x", []corev1.ContainerExtendedResourceRequest{one, m("c0", gpu, "another")}, nil},
		{"no claim", "", []corev1.ContainerExtendedResourceRequest{one},
			[]string{"s.resourceClaimName: Required value"}},
		{"no mapping", "x", nil,
			[]string{"s.requestMappings: Required value: at least one request mapping is required"}},
		{"unknown container", "x", []corev1.ContainerExtendedResourceRequest{m("nope", gpu, request)},
			[]string{`s.requestMappings[0].containerName: Invalid value: "nope": must match the name of an entry in spec.initContainers.name or spec.containers.name`}},
		{"no extended resource", "x", []corev1.ContainerExtendedResourceRequest{m("c0", "cpu", request)},
			[]string{`s.requestMappings[0].resourceName: Invalid value: "cpu": must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests`}},
		{"another container's", "x", []corev1.ContainerExtendedResourceRequest{one, m("i0", gpu, request)},
			[]string{`s.requestMappings[1].resourceName: Invalid value: "example.com/gpu": must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests`}},
		{"wrong request", "x", []corev1.ContainerExtendedResourceRequest{m("c0", gpu, "A_")},
			[]string{`s.requestName: Invalid value: "A_": ` + label}},
		{"twice", "x", []corev1.ContainerExtendedResourceRequest{one, one},
			[]string{`s.requestMappings[1].containerName: Duplicate value: "c0"`,
				`s.requestMappings[1].resourceName: Duplicate value: "example.com/gpu"`,
				`s.requestMappings[1].requestName: Duplicate value: "container-0-request-0"`}},
		{"no names", "z", []corev1.ContainerExtendedResourceRequest{m("", "", "")}, []string{
			`s.requestMappings[0].containerName: Invalid value: "": must match the name of an entry in spec.initContainers.name or spec.containers.name`, `s.requestName: Invalid value: "": ` + label}},
	} {
		var got []string
		for _, err := range validateExtendedClaim(
			&corev1.PodExtendedResourceClaimStatus{ResourceClaimName: c.claim, RequestMappings: c.mappings}, spec,
			field.NewPath("s")) {
			got = append(got, err.Error())
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	if errs := validateExtendedClaim(nil, spec, nil); errs != nil {
		t.Error(errs)
	}
}
