package trace

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestValid(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		parent: true, New(): true, "": false, "00-xyz": false, strings.ToUpper(parent): false, "01" + parent[2:]: false, parent + "-x": false,
	} {
		if Valid(s) != want {
			t.Errorf("Valid(%q) is %t", s, !want)
		}
	}
	if New() == New() {
		t.Error("two contexts are the same")
	}
}

func TestHandOn(t *testing.T) {
	t.Parallel()
	owner, child := &corev1.Pod{}, &corev1.Pod{}
	HandOn(child, owner)
	if child.Annotations != nil {
		t.Error("an owner without a context gave one")
	}
	owner.Annotations = map[string]string{Annotation: parent}
	template := map[string]string{"a": "b"}
	child.Annotations = template
	HandOn(child, owner)
	if Of(child) != parent || child.Annotations["a"] != "b" || len(template) != 1 {
		t.Errorf("child %v, template %v", child.Annotations, template)
	}
	owner.Annotations = map[string]string{Annotation: New()}
	if HandOn(child, owner); Of(child) != parent {
		t.Error("a child's own context was replaced")
	}
}

func TestStep(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.UID = "ns", "p", "u1"
	start := time.Unix(100, 0).UTC()
	if Step(context.Background(), log, pod, "kubelet.sandbox", start, start.Add(time.Second)); out.Len() != 0 {
		t.Errorf("no context, and yet: %s", &out)
	}
	pod.Annotations = map[string]string{Annotation: parent}
	Step(context.Background(), log, pod, "kubelet.sandbox", start, start.Add(time.Second))
	for _, want := range []string{"msg=step", "trace=0af7651916cd43dd8448eb211c80319c", "step=kubelet.sandbox", "object=ns/p", "uid=u1", "duration=1s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s lacks %s", &out, want)
		}
	}
}
