package object

import (
	"fmt"
	"testing"

	"bonsai/pkg/why"
	"bonsai/pkg/why/whytest"
)

const world = `
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: a, name: x}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: b, name: x}}
`

// TestExplain: an object of any kind exists, is elsewhere, is absent, or could not be read; these differ.
func TestExplain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o      why.Object
		hidden []string
		want   string
	}{
		"there": {why.Object{Kind: "ConfigMap", Namespace: "a", Name: "x"}, nil, "ConfigMap a/x exists. true []"},
		"elsewhere": {why.Object{Kind: "ConfigMap", Namespace: "c", Name: "x"}, nil,
			"ConfigMap c/x does not exist. false [ConfigMap x is in namespace a. ConfigMap x is in namespace b.]"},
		"nowhere": {why.Object{Kind: "ConfigMap", Namespace: "c", Name: "y"}, nil,
			"ConfigMap c/y does not exist. false [There is no ConfigMap y in namespace c.]"},
		"hidden": {why.Object{Kind: "ConfigMap", Namespace: "a", Name: "x"}, []string{"configmaps"},
			"ConfigMap a/x could not be read. false []"},
		"no such kind": {why.Object{Group: "a.b", Kind: "Tea", Name: "x"}, nil,
			`Tea x does not exist. false [The server serves no kind Tea of group "a.b".]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := whytest.Parse(t, world)
			s.Hidden = c.hidden
			a := whytest.Ask(t, s, why.Explainers{Other: why.ExplainerFunc(Explain)}, c.o)
			var texts []string
			for _, cause := range a.Causes {
				texts = append(texts, cause.Text)
			}
			if got := fmt.Sprint(a.State, " ", a.Well, " ", texts); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
