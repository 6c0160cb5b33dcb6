package trace

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	uid    = "f3a1c2d4-0b5e-4c6f-8a7b-9c0d1e2f3a4b"
)

func TestValid(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		parent: true, New(): true, "": false, "00-xyz": false, strings.ToUpper(parent): false, "01" + parent[2:]: false,
		parent + "-x": false,
	} {
		if Valid(s) != want {
			t.Errorf("Valid(%q) is %t", s, !want)
		}
	}
	if one, other := New(), New(); one == other {
		t.Error("two contexts are the same")
	}
}

// TestOf: a UUID is a trace-id without its dashes, and so is the UID of a static pod, which is 32 hex digits.
func TestOf(t *testing.T) {
	t.Parallel()
	const id = "f3a1c2d40b5e4c6f8a7b9c0d1e2f3a4b"
	for have, want := range map[types.UID]string{uid: id, id: id, "": "", "u1": "", types.UID(strings.ToUpper(uid)): "",
		uid + "0": "", types.UID(uid[:9] + "g" + uid[10:]): ""} {
		pod := &corev1.Pod{}
		pod.UID = have
		if got := Of(pod); got != want {
			t.Errorf("UID %q: trace %q, want %q", have, got, want)
		}
	}
}

func TestStep(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: Level, AddSource: true}))
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = "ns", "p"
	start := time.Unix(100, 0).UTC()
	if Step(context.Background(), log, pod, "kubelet.sandbox", start, start.Add(time.Second)); out.Len() != 0 {
		t.Errorf("no UID, and yet: %s", &out)
	}
	pod.UID = uid
	if Created(context.Background(), log, pod, "", start, start); out.Len() != 0 {
		t.Errorf("a request without a trace context, and yet: %s", &out)
	}
	step := []string{"msg=step", "trace=f3a1c2d40b5e4c6f8a7b9c0d1e2f3a4b", "object=ns/p", "uid=" + uid, "duration=1s",
		"trace_test.go:"}
	Step(context.Background(), log, pod, "kubelet.sandbox", start, start.Add(time.Second))
	wants(t, out.String(), append(step, "step=kubelet.sandbox"))
	out.Reset()
	Created(context.Background(), log, pod, parent, start, start.Add(time.Second))
	wants(t, out.String(), append(step, "step=apiserver.create", "link=0af7651916cd43dd8448eb211c80319c"))
}

func wants(t *testing.T, got string, parts []string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("%s lacks %s", got, p)
		}
	}
}
