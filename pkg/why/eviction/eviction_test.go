package eviction

import (
	"context"
	"strings"
	"testing"

	"bonsai/pkg/why"
	"bonsai/pkg/why/whytest"
)

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: shop, labels: {app: db}}
status: {phase: Running, conditions: [{type: Ready, status: "READY"}]}
---
`

func written(name, spec, status string) string {
	return "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: " + name + ", namespace: " +
		"shop}\nspec: {selector: " +
		"{matchLabels: {app: db}}, " + spec + "}\nstatus: {" + status + "}\n---\n"
}

func TestExplain(t *testing.T) {
	t.Parallel()
	full := "disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1"
	for name, c := range map[string]struct {
		world, ready string
		well         bool
		want         []string
	}{
		"no budget": {"", "True", true, []string{"no PodDisruptionBudget selects it"}},
		"room": {written("one", "maxUnavailable: 1", "disruptionsAllowed: 1"), "True", true,
			[]string{"allows 1 disruption now"}},
		"never room": {written("one", "minAvailable: 1", full), "True", false, []string{"never allows an eviction",
			`"maxUnavailable":1`}},
		"pods that nothing controls": {written("one", "maxUnavailable: 1", "disruptionsAllowed: 0, conditions: [{type: "+
			"DisruptionAllowed, status: 'False', reason: SyncFailed, message: 'found no controllers for pod \"db-0\"'}]"),
			"True", false, []string{"cannot count its pods", "pods that nothing controls have none"}},
		"a budget of all": {strings.Replace(written("one", "minAvailable: 1", full), "matchLabels: {app: db}", "", 1), "True",
			false, []string{"never allows an eviction", "counts all pods of the namespace"}},
		"two budgets": {written("one", "minAvailable: 1", full) + written("two", "minAvailable: 1", full), "True", false,
			[]string{"The PodDisruptionBudgets one and two select the pod"}},
		"not ready": {written("one", "minAvailable: 1", "disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: "+
			"1, expectedPods: 1"),
			"False", false, []string{"wants 1 of 1 pod healthy (minAvailable is 1), and 0 are",
				"Pod db-0 is not ready", "AlwaysAllow"}},
		"not ready, and that is allowed": {written("one", "minAvailable: 1, unhealthyPodEvictionPolicy: AlwaysAllow",
			"disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 1, expectedPods: 1"), "False", true,
			[]string{"it is not ready"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := whytest.Parse(t, strings.Replace(pod, "READY", c.ready, 1)+c.world)
			crashes := why.ExplainerFunc(func(context.Context, *why.Case, why.Object) (why.Answer,
				error) {
				return why.Answer{Causes: []why.Cause{{Code: "ContainerFailed"}}}, nil
			})
			a, err := Explain(t.Context(), why.NewCase(why.NewWorld(s), whytest.Now, why.Explainers{Other: crashes}),
				why.Object{Kind: "Pod", Namespace: "shop", Name: "db-0"})
			if err != nil || a.Well != c.well {
				t.Fatalf("%+v, %v", a, err)
			}
			text := a.State
			for _, cause := range a.Causes {
				text += "\n" + cause.Text
				for _, b := range cause.Because {
					text += "\n" + b.Text
				}
				for _, f := range cause.Fixes {
					text += "\n" + string(f.Command)
				}
			}
			for _, w := range c.want {
				if !strings.Contains(text, w) {
					t.Errorf("%q is not in\n%s", w, text)
				}
			}
		})
	}
}
