package client

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTaintPatch: a node gets the configuration's taints, loses those that left it, and keeps what others set.
func TestTaintPatch(t *testing.T) {
	t.Parallel()
	const one = `{"metadata":{"annotations":{"bonsai.io/configured-taints":"a:NoSchedule"},"resourceVersion":"7"}`
	for name, tc := range map[string]struct {
		has, annotated, wanted string // taints, names, taints
		want                   string
	}{
		"nothing wanted": {"theirs=:NoExecute", "", "", ""},
		"a new one": {"theirs=:NoExecute", "", "a=1:NoSchedule",
			one + `,"spec":{"taints":[{"key":"theirs","effect":"NoExecute"},{"key":"a","value":"1","effect":"NoSchedule"}]}}`},
		"registered": {"a=1:NoSchedule", "", "a=1:NoSchedule", one + `}`},
		"as it is":   {"a=1:NoSchedule theirs=:NoExecute", "a:NoSchedule", "a=1:NoSchedule", ""},
		"another value": {"a=1:NoSchedule", "a:NoSchedule", "a=2:NoSchedule",
			one + `,"spec":{"taints":[{"key":"a","value":"2","effect":"NoSchedule"}]}}`},
		"another effect": {"a=1:NoExecute", "a:NoExecute", "a=1:NoSchedule",
			one + `,"spec":{"taints":[{"key":"a","value":"1","effect":"NoSchedule"}]}}`},
		"both effects": {"a=1:NoExecute", "a:NoExecute", "a=1:NoSchedule a=1:NoExecute",
			`{"metadata":{"annotations":{"bonsai.io/configured-taints":"a:NoExecute,a:NoSchedule"},` +
				`"resourceVersion":"7"},"spec":{"taints":[{"key":"a","value":"1","effect":"NoExecute"},{"key":"a","value":"1","effect":"NoSchedule"}]}}`},
		"taken away by somebody": {"", "a:NoSchedule", "a=1:NoSchedule",
			one + `,"spec":{"taints":[{"key":"a","value":"1","effect":"NoSchedule"}]}}`},
		"all gone": {"a=1:NoSchedule theirs=:NoExecute", "a:NoSchedule", "",
			`{"metadata":{"annotations":{"bonsai.io/configured-taints":null},"resourceVersion":"7"},` +
				`"spec":{"taints":[{"key":"theirs","effect":"NoExecute"}]}}`},
		"gone, the last one": {"a=1:NoSchedule", "a:NoSchedule", "",
			`{"metadata":{"annotations":{"bonsai.io/configured-taints":null},"resourceVersion":"7"},"spec":{"taints":[]}}`},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}
		for _, text := range strings.Fields(tc.has) {
			node.Spec.Taints = append(node.Spec.Taints, parseTaint(text))
		}
		if tc.annotated != "" {
			node.Annotations = map[string]string{taintedAnnotation: tc.annotated}
		}
		got, err := taintPatch(node, strings.Fields(tc.wanted))
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %s, %v, not %s", name, got, err, tc.want)
		}
	}
}
