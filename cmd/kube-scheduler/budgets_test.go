package main

import (
	"fmt"
	"log/slog"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestBudgetsKeepOneOrder: preemption compares the budgets of two moments one by one, so the same ones come in the same
// order; a change of one is there at the next look, and what nobody reads is not kept.
func TestBudgetsKeepOneOrder(t *testing.T) {
	t.Parallel()
	c, err := newClient(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(c, slog.New(slog.DiscardHandler))
	budget := func(name, version string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: version,
				Annotations: map[string]string{"a": "b"}},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1}}
	}
	if list := w.budgets.Budgets(); len(list) != 0 {
		t.Errorf("%d budgets before there are any", len(list))
	}
	names := ""
	for i := range 9 {
		w.budgets.informer.Set(budget(fmt.Sprint("b", 8-i), "1"))
		names += fmt.Sprintf(" b%d 1", i)
	}
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, names},
		{func() { w.budgets.informer.Set(budget("b8", "2")) }, names[:len(names)-1] + "2"},
		{func() { w.budgets.informer.Replace(nil) }, ""},
	} {
		step.do()
		for range 2 {
			got := ""
			for _, b := range w.budgets.Budgets() {
				got += " " + b.Name + " " + b.ResourceVersion
				if b.Annotations != nil || b.Status.DisruptionsAllowed != 1 {
					t.Errorf("kept %+v", b)
				}
			}
			if got != step.want {
				t.Errorf("%q, want %q", got, step.want)
			}
		}
	}
}
