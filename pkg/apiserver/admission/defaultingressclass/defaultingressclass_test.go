package defaultingressclass

import (
	"context"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/networking"
	"bonsai/pkg/apiserver/admission"
)

type classes []runtime.Object

func (c classes) List(context.Context, string, string) ([]runtime.Object, error) { return c, nil }

func class(name, isDefault string, second int64) runtime.Object {
	return &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0)),
			Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: isDefault}}}
}

// TestAdmit: the choices are those of a kube-apiserver v1.36.3.
func TestAdmit(t *testing.T) {
	t.Parallel()
	several := classes{class("old", "true", 1), class("z", "true", 2), class("a", "true", 2), class("no", "false", 3),
		class("bad", "yes", 3)}
	named := networkingv1.Ingress{Spec: networkingv1.IngressSpec{IngressClassName: new("x")}}
	annotated := networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{networking.ClassAnnotation: ""}}}
	for name, c := range map[string]struct {
		of      networkingv1.Ingress
		classes classes
		op      admission.Operation
		want    string
	}{
		"no class":         {networkingv1.Ingress{}, classes{class("no", "false", 1)}, admission.Create, "none"},
		"one default":      {networkingv1.Ingress{}, several[:1], admission.Create, "old"},
		"several defaults": {networkingv1.Ingress{}, several, admission.Create, "a"},
		"named":            {named, several, admission.Create, "x"},
		"annotated":        {annotated, several, admission.Create, "none"},
		"update":           {networkingv1.Ingress{}, several, admission.Update, "none"},
	} {
		i := c.of.DeepCopy()
		a := &admission.Attributes{Operation: c.op, Resource: networkingv1.SchemeGroupVersion.WithResource("ingresses"),
			Object: i}
		if err := New(c.classes).Mutator.Admit(t.Context(), a); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := "none"
		if i.Spec.IngressClassName != nil {
			got = *i.Spec.IngressClassName
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
