package client

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLabelPatch: a node gets the configuration's labels, loses those that left it, and keeps what others set.
func TestLabelPatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		labels    map[string]string
		annotated string
		wanted    map[string]string
		want      string
	}{
		"nothing wanted": {map[string]string{"mine": "x"}, "", nil, ""},
		"a role": {map[string]string{"mine": "x"}, "", map[string]string{"node-role.kubernetes.io/a": ""},
			`{"metadata":{"annotations":{"bonsai.io/configured-labels":"node-role.kubernetes.io/a"},"labels":{"node-role.kubernetes.io/a":""}}}`},
		"registered": {map[string]string{"a": "1"}, "", map[string]string{"a": "1"},
			`{"metadata":{"annotations":{"bonsai.io/configured-labels":"a"},"labels":{}}}`},
		"as it is": {map[string]string{"a": "1"}, "a", map[string]string{"a": "1"}, ""},
		"changed, one gone": {map[string]string{"a": "1", "b": "2"}, "a,b", map[string]string{"a": "3"},
			`{"metadata":{"annotations":{"bonsai.io/configured-labels":"a"},"labels":{"a":"3","b":null}}}`},
		"all gone": {map[string]string{"a": "1", "mine": "x"}, "a", nil,
			`{"metadata":{"annotations":{"bonsai.io/configured-labels":null},"labels":{"a":null}}}`},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}
		if tc.annotated != "" {
			node.Annotations = map[string]string{labelledAnnotation: tc.annotated}
		}
		got, err := labelPatch(node, tc.wanted)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %s, %v, not %s", name, got, err, tc.want)
		}
	}
}
