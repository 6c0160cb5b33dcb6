package rows

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

func TestForbidPrivileged(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	spec := func(p *bool) corev1.PodSpec {
		return corev1.PodSpec{InitContainers: []corev1.Container{{}},
			Containers: []corev1.Container{{}, {SecurityContext: &corev1.SecurityContext{Privileged: p}}}}
	}
	for _, c := range []struct {
		obj  runtime.Object
		want string
	}{
		{&corev1.Pod{Spec: spec(&yes)},
			"spec.containers[1].securityContext.privileged: Forbidden: disallowed by cluster policy"},
		{&corev1.Pod{Spec: spec(&no)}, ""},
		{&corev1.ConfigMap{}, ""},
		{&corev1.ReplicationController{}, ""},
		{&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: spec(&yes)}}},
			"spec.template.spec.containers[1].securityContext.privileged: Forbidden: disallowed by cluster policy"},
	} {
		s := resources.Strategy{Validate: func(runtime.Object) field.ErrorList { return nil }}
		forbidPrivileged(&s)
		update, _ := s.ValidateUpdate(c.obj, c.obj)
		for _, errs := range []field.ErrorList{s.Validate(c.obj), update} {
			got := ""
			if len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if got != c.want {
				t.Errorf("%T: %q, want %q", c.obj, got, c.want)
			}
		}
	}
}
