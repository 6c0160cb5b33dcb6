package namespacelifecycle

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/admission"
)

type namespaces map[string]corev1.NamespacePhase

func (n namespaces) Get(_ context.Context, _, name string) (runtime.Object, error) {
	if phase, ok := n[name]; ok {
		return &corev1.Namespace{Status: corev1.NamespaceStatus{Phase: phase}}, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
}

func (n namespaces) GetCached(ctx context.Context, ns, name string) (runtime.Object, error) {
	return n.Get(ctx, ns, name)
}

// The messages are what kube-apiserver v1.36 answers.
func TestPlugin(t *testing.T) {
	t.Parallel()
	plug := New(namespaces{"live": corev1.NamespaceActive, "foo": corev1.NamespaceTerminating})
	for name, c := range map[string]struct {
		op                 admission.Operation
		resource, ns, name string
		want               string
	}{
		"create":            {admission.Create, "configmaps", "live", "x", ""},
		"create at cluster": {admission.Create, "nodes", "", "x", ""},
		"no such namespace": {admission.Create, "configmaps", "bar", "x", `namespaces "bar" not found`},
		"on its way out": {admission.Create, "configmaps", "foo", "x",
			`configmaps "x" is forbidden: unable to create new content in namespace foo because it is being terminated`},
		"update on its way out": {admission.Update, "configmaps", "foo", "x", ""},
		"delete a namespace":    {admission.Delete, "namespaces", "", "live", ""},
		"delete default": {admission.Delete, "namespaces", "", "default",
			`namespaces "default" is forbidden: this namespace may not be deleted`},
		"make a namespace": {admission.Create, "namespaces", "", "default", ""},
	} {
		a := &admission.Attributes{Operation: c.op, Resource: corev1.SchemeGroupVersion.WithResource(c.resource),
			Namespace: c.ns, Name: c.name}
		err := plug.Mutator.Admit(context.Background(), a)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %s", name, got)
		}
		if name == "on its way out" && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			t.Errorf("%s: no cause in %v", name, err)
		}
	}
}
