package bootstrap_test

import (
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What becomes of changed, deleted and unknown objects, as it was seen of a kube-apiserver v1.36.3 within a minute.
func TestFairnessObjectsAreKept(t *testing.T) {
	t.Parallel()
	const key = flowcontrolv1.AutoUpdateAnnotationKey
	s, _ := newStores(t)
	b, _ := newBootstrap(t, s)
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	schemas, levels := flowcontrolv1.Resource("flowschemas"), flowcontrolv1.Resource("prioritylevelconfigurations")
	// annotate gives an object an annotation; "-" takes it away.
	annotate := func(m *metav1.ObjectMeta, value string) {
		if m.Annotations = map[string]string{key: value}; value == "-" {
			m.Annotations = nil
		}
	}
	schema := func(name, annotation string, precedence int32) {
		t.Helper()
		f := get[*flowcontrolv1.FlowSchema](t, s, schemas, "", name)
		annotate(&f.ObjectMeta, annotation)
		f.Spec.MatchingPrecedence = precedence
		put(t, s, schemas, f)
	}
	schema("service-accounts", "false", 9001)
	schema("kube-scheduler", "true", 801)
	schema("system-nodes", "-", 501)
	schema("global-default", "-", 9900)
	schema("exempt", "false", 1)
	low := get[*flowcontrolv1.PriorityLevelConfiguration](t, s, levels, "", "workload-low")
	annotate(&low.ObjectMeta, "foo")
	*low.Spec.Limited.NominalConcurrencyShares = 101
	put(t, s, levels, low)
	exempt := get[*flowcontrolv1.PriorityLevelConfiguration](t, s, levels, "", "exempt")
	*exempt.Spec.Exempt.NominalConcurrencyShares = 7
	put(t, s, levels, exempt)
	for _, name := range []string{"catch-all", "node-high"} {
		if _, _, err := s[levels].Delete(t.Context(), "", name, &metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"stray": "true", "mine": "false", "silent": "-"} {
		f := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: flowcontrolv1.FlowSchemaSpec{
				PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "a"}}}
		annotate(&f.ObjectMeta, value)
		if _, err := s[schemas].Create(t.Context(), "", f, &metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		annotation string
		precedence int32
	}{
		"service-accounts": {"false", 9001}, "kube-scheduler": {"true", 800}, "system-nodes": {"false", 501},
		"global-default": {"true", 9900},
		"exempt":         {"true", 1}, "mine": {"false", 1000}, "silent": {"", 1000},
	} {
		f := get[*flowcontrolv1.FlowSchema](t, s, schemas, "", name)
		if f.Annotations[key] != want.annotation || f.Spec.MatchingPrecedence != want.precedence {
			t.Errorf("%s: annotation %q, precedence %d, want %v", name, f.Annotations[key], f.Spec.MatchingPrecedence,
				want)
		}
	}
	if _, err := s[schemas].Get(t.Context(), "", "stray"); !apierrors.IsNotFound(err) {
		t.Errorf("a stray object: %v", err)
	}
	low = get[*flowcontrolv1.PriorityLevelConfiguration](t, s, levels, "", "workload-low")
	if low.Annotations[key] != "false" || *low.Spec.Limited.NominalConcurrencyShares != 101 {
		t.Errorf("workload-low: %v, %d shares", low.Annotations, *low.Spec.Limited.NominalConcurrencyShares)
	}
	exempt = get[*flowcontrolv1.PriorityLevelConfiguration](t, s, levels, "", "exempt")
	if *exempt.Spec.Exempt.NominalConcurrencyShares != 7 {
		t.Errorf("exempt has %d shares", *exempt.Spec.Exempt.NominalConcurrencyShares)
	}
	for _, name := range []string{"catch-all", "node-high"} {
		get[*flowcontrolv1.PriorityLevelConfiguration](t, s, levels, "", name)
	}
}
