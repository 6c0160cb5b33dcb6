package podsyncer

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubelet/executor"
	"bonsai/pkg/kubelet/lifecycle"
)

// A resize is told of once for each of its steps, and shown while it lasts.
func TestResizeIsToldOf(t *testing.T) {
	t.Parallel()
	s, p := setup()
	p.set(runs)
	pod := onePod()
	cpu := func(q string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(q)}}
	}
	asks := func(q string) {
		pod = pod.DeepCopy()
		pod.Generation++
		pod.Spec.Containers[0].Resources = cpu(q)
	}
	gives := func(q, reason string, generation int64) {
		p.resize.Reason, p.resize.Generation = reason, generation
		p.resize.Containers = map[string]corev1.ResourceRequirements{"c": cpu(q)}
	}
	sync := func(when, want string) {
		t.Helper()
		p.took()
		_, err := s.Sync(t.Context(), pod)
		if !errors.Is(err, p.fail["act"]) {
			t.Errorf("%s: %v", when, err)
		}
		var told []string
		for _, n := range strings.Split(p.took(), ", ") {
			if strings.HasPrefix(n, "event") || strings.HasPrefix(n, "done") || n == "requested" ||
				strings.HasPrefix(n, "infeasible") || strings.HasPrefix(n, "act") ||
				n == "reverted" || n == "accepted" {
				told = append(told, n)
			}
		}
		if got := strings.Join(told, ", "); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	asks("1")
	gives("1", "", 1)
	sync("nothing was asked for", "")
	asks("2")
	gives("1", corev1.PodReasonDeferred, 1)
	sync("no room", "requested, event ResizeDeferred")
	sync("still no room", "")
	asks("1")
	gives("1", "", 1)
	sync("taken back", "reverted")
	asks("2")
	gives("1", corev1.PodReasonDeferred, 1)
	sync("no room again", "requested, event ResizeDeferred")
	gives("2", "", 1)
	sync("room", "accepted")
	gives("1", "", 1)
	sync("as before", "")
	asks("99")
	gives("1", corev1.PodReasonInfeasible, 1)
	sync("never", "requested, event ResizeInfeasible, infeasible false")
	asks("3")
	gives("3", "", pod.Generation)
	p.resize.PodActuates = true
	p.fail["act"] = &executor.ResizeError{Err: errors.New("in use")}
	sync("room, but it fails",
		"requested, event ResizeStarted, act sandbox=false start=0, event ResizeError, done in use")
	if c := conditionOf(p.status,
		corev1.PodResizeInProgress); c == nil || c.Reason != corev1.PodReasonError || c.Message != "in use" {
		t.Errorf("%+v", c)
	}
	sync("again", "act sandbox=false start=0")
	delete(p.fail, "act")
	p.act = func(plan lifecycle.Plan) {
		if plan.ResizePod {
			p.resize.PodActuates = false
		}
	}
	sync("done", "act sandbox=false start=0, event ResizeCompleted, done <nil>")
	if c := conditionOf(p.status, corev1.PodResizeInProgress); c != nil {
		t.Errorf("%+v", c)
	}
	sync("and nothing more", "")
}

func conditionOf(st corev1.PodStatus, of corev1.PodConditionType) *corev1.PodCondition {
	for i := range st.Conditions {
		if st.Conditions[i].Type == of {
			return &st.Conditions[i]
		}
	}
	return nil
}
