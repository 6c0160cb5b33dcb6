package pods

import (
	"bytes"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func pod(annotation string, containers ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	if annotation != "" {
		p.Annotations = map[string]string{DefaultContainer: annotation}
	}
	for _, c := range containers {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: c})
	}
	return p
}

// TestContainer: the named container, else that of kubectl.kubernetes.io/default-container, else the first, which is
// said.
func TestContainer(t *testing.T) {
	t.Parallel()
	mixed := pod("", "a")
	mixed.Spec.InitContainers = []corev1.Container{{Name: "setup"}}
	mixed.Spec.EphemeralContainers = []corev1.EphemeralContainer{
		{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
	for name, c := range map[string]struct {
		pod                   *corev1.Pod
		arg, want, note, fail string
	}{
		"the only one":         {pod: pod("", "a"), want: "a"},
		"the first of several": {pod: pod("", "a", "b"), want: "a", note: "Defaulted container \"a\" out of: a, b\n"},
		"named":                {pod: pod("", "a", "b"), arg: "b", want: "b"},
		"annotated":            {pod: pod("b", "a", "b"), want: "b"},
		"named over annotated": {pod: pod("b", "a", "b"), arg: "a", want: "a"},
		"annotated, not there": {pod: pod("c", "a", "b"), want: "a",
			note: "Defaulted container \"a\" out of: a, b\n"},
		"with others": {pod: mixed, want: "a",
			note: "Defaulted container \"a\" out of: a, debug (ephem), setup (init)\n"},
		"an init container":      {pod: mixed, arg: "setup", want: "setup"},
		"an ephemeral container": {pod: mixed, arg: "debug", want: "debug"},
		"unknown": {pod: mixed, arg: "x",
			fail: "container x is not valid for pod p out of: a, debug (ephem), setup (init)"},
		"none": {pod: pod(""), fail: "pod p has no containers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var note bytes.Buffer
			got, err := Container(c.pod, c.arg, &note)
			if said := text(err); got != c.want || note.String() != c.note || said != c.fail {
				t.Errorf("got %q, %q, %q", got, note.String(), said)
			}
			if got, err := Container(c.pod, c.arg, nil); got != c.want || text(err) != c.fail {
				t.Errorf("without a note: %q, %v", got, err)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestSelector(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		`{"selector":{"app":"x","tier":"y"}}`:                                                           "app=x,tier=y",
		`{"selector":{"matchLabels":{"app":"x"}}}`:                                                      "app=x",
		`{"selector":{"matchExpressions":[{"key":"a","operator":"In","values":["1","2"]}]}}`:            "a in (1,2)",
		`{"selector":{"matchLabels":{"app":"x"},"matchExpressions":[{"key":"b","operator":"Exists"}]}}`: "app=x,b",
		`{}`: "error: selector for *v1.Service not implemented",
	} {
		u := &unstructured.Unstructured{
			Object: map[string]any{"kind": "Service", "metadata": map[string]any{"name": "s"}}}
		var content map[string]any
		if err := json.Unmarshal([]byte(spec), &content); err != nil {
			t.Fatal(err)
		}
		u.Object["spec"] = content
		got, err := Selector(u)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}
