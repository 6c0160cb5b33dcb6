package daemonset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var start = time.Unix(1_000_000, 0)

// scene reads nodes and their pods from "n1: new ready, old; n2:". A pod is new or old (its revision), and ready (for
// an hour), justready (for a second), failed, succeeded, going (being deleted) or unscheduled. Pods are older from left
// to right.
func scene(t *testing.T, text string) *state {
	t.Helper()
	s := &state{ds: set(nil), hash: "new", now: start}
	s.ds.Spec.MinReadySeconds = 10
	var pods []*corev1.Pod
	for entry := range strings.SplitSeq(text, ";") {
		name, list, ok := strings.Cut(strings.TrimSpace(entry), ":")
		if !ok {
			t.Fatalf("scene %q", text)
		}
		if !strings.HasSuffix(name, "!") { // n1! is a node that is gone
			n := node(name, nil)
			if strings.HasSuffix(name, "#") { // n1# is a node that others keep off
				n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoExecute}}
			}
			if strings.HasSuffix(name, "~") { // n1~ is a node that takes no new pods
				n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}
			}
			s.nodes = append(s.nodes, n)
		}
		for i, words := range strings.Split(list, ",") {
			if words = strings.TrimSpace(words); words != "" {
				pods = append(pods, scenePod(t, strings.Fields(words), name, fmt.Sprint(name, "-", i),
					start.Add(-time.Duration(i)*time.Hour)))
			}
		}
	}
	s.pods = byNode(pods)
	return s
}

func scenePod(t *testing.T, words []string, on, name string, born time.Time) *corev1.Pod {
	t.Helper()
	p := podFor(set(nil), words[0], on)
	p.Name, p.CreationTimestamp, p.Spec.NodeName, p.Status.Phase = name, metav1.NewTime(born), on, corev1.PodRunning
	ready := func(since time.Duration) {
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(start.Add(-since))}}
	}
	for _, w := range words[1:] {
		switch w {
		case "ready":
			ready(time.Hour)
		case "justready":
			ready(time.Second)
		case "failed":
			p.Status.Phase = corev1.PodFailed
		case "succeeded":
			p.Status.Phase = corev1.PodSucceeded
		case "going":
			p.DeletionTimestamp = &metav1.Time{Time: start}
		case "unscheduled":
			p.Spec.NodeName = ""
		default:
			t.Fatalf("a pod that is %q", w)
		}
	}
	return p
}

// rolling sets the strategy from "unavailable=1" or "surge=50%".
func (s *state) rolling(t *testing.T, text string) *state {
	t.Helper()
	u := &appsv1.RollingUpdateDaemonSet{}
	name, value, _ := strings.Cut(text, "=")
	v := intstr.Parse(value)
	switch name {
	case "unavailable":
		u.MaxUnavailable = &v
	case "surge":
		u.MaxSurge = &v
	case "ondelete":
		s.ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
		return s
	default:
		t.Fatalf("strategy %q", text)
	}
	s.ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: u}
	return s
}

// String lists what the plan does: "+n1" is a new pod on n1, "-n1-0" a pod that goes, with a star if it had ended.
func (p plan) String() string {
	var out []string
	for _, n := range p.create {
		out = append(out, "+"+n)
	}
	for _, pod := range p.delete {
		star := ""
		if slices.Contains(p.ended, pod) {
			star = "*"
		}
		out = append(out, "-"+pod.Name+star)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestSpread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ strategy, scene, want string }{
		{"unavailable=1", "n1:; n2:", "+n1 +n2"},
		{"unavailable=1", "n1: new ready; n2: old", ""},
		{"unavailable=1", "n1: new ready going", ""},
		{"unavailable=1", "n1: new failed going; n2: old succeeded going", "+n1 +n2"}, // they wait for a finalizer only
		{"unavailable=1", "n1#:; n2#: new ready", "-n2#-0"},
		{"unavailable=1", "n1#: new going", ""},
		{"unavailable=1", "n1: new failed; n2: new succeeded", "-n1-0* -n2-0*"},
		{"unavailable=1", "n1: new failed, new ready", "-n1-0*"},
		{"unavailable=1", "n1: new, old ready, old", "-n1-0 -n1-1"},
		{"unavailable=1", "n1: new, old unscheduled", "-n1-1"},
		{"unavailable=1", "gone!: new; n1: new", ""},
		{"unavailable=1", "gone!: new unscheduled; n1: new", "-gone!-0"},
		{"ondelete=", "n1: new, old", "-n1-0"},
		{"surge=1", "n1: new, old ready", ""},
		{"surge=10%", "n1: new, old ready", ""},
		{"surge=0", "n1: new, old ready", "-n1-0"},
		{"surge=1", "n1: new ready, old ready", "-n1-1"},
		{"surge=1", "n1: new justready, old ready", ""},
		{"surge=1", "n1: new, old", "-n1-1"},
		{"surge=1", "n1: new, new, old ready, old ready", "-n1-0 -n1-2"},
	} {
		if got := scene(t, c.scene).rolling(t, c.strategy).spread().String(); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.strategy, c.scene, got, c.want)
		}
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ strategy, scene, want string }{
		{"unavailable=1", "n1: old ready; n2: old ready; n3: old ready", "-n1-0"},
		{"unavailable=2", "n1: old ready; n2: old ready; n3: old ready", "-n1-0 -n2-0"},
		{"unavailable=50%", "n1: old ready; n2: old ready; n3: old ready", "-n1-0 -n2-0"},
		{"unavailable=5", "n1: old ready; n2: new ready", "-n1-0"},
		{"unavailable=1", "n1: new; n2: old ready", ""},
		{"unavailable=1", "n1: new justready; n2: old ready", ""},
		{"unavailable=1", "n1: new ready; n2: old ready", "-n2-0"},
		{"unavailable=1", "n1: old; n2: old ready; n3: old", "-n1-0 -n3-0"},
		{"unavailable=1", "n1: old ready going; n2: old ready", ""},
		{"unavailable=1", "n1:; n2: old ready", ""},
		{"unavailable=1", "n1: old ready, old ready; n2: old ready", ""},
		{"unavailable=1", "n1~: old ready; n2: old ready", "-n1~-0"},
		{"unavailable=3", "n1~: old ready; n2: old ready", "-n1~-0 -n2-0"},
		{"unavailable=1", "n1~: old; n2: old ready", "-n1~-0"},
		{"unavailable=1", "n1~:; n2: old ready", "-n2-0"},
		{"unavailable=1", "n1~: new ready; n2: old ready", "-n2-0"},
		{"surge=1", "n1~: old ready; n2: old ready", "+n2 -n1~-0"},
		{"surge=1", "n1~: old; n2: old ready", "+n2 -n1~-0"},
		{"surge=1", "n1~: new ready; n2: old ready", "+n2"},
		{"unavailable=1", "n1: new ready; n2: new ready", ""},
		{"surge=1", "n1: old ready; n2: old ready", "+n1"},
		{"surge=2", "n1: old ready; n2: old ready; n3: old ready", "+n1 +n2"},
		{"surge=1", "n1: new, old ready; n2: old ready", ""},
		{"surge=1", "n1: new ready, old ready; n2: old ready", "+n2 -n1-1"},
		{"surge=1", "n1: new justready, old ready; n2: old ready", ""},
		{"surge=1", "n1: old; n2: old ready", "+n1 +n2"},
		{"surge=1", "n1: old ready, old ready; n2: old ready", ""},
		{"surge=1", "n1: new ready; n2: new", ""},
	} {
		if got := scene(t, c.scene).rolling(t, c.strategy).update().String(); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.strategy, c.scene, got, c.want)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	s := scene(t, "n1: new ready; n2: old justready; n3:; n4#: new ready; n5: new; n6: new, old ready; n7#:")
	got, wait := s.status(true)
	want := appsv1.DaemonSetStatus{
		ObservedGeneration: 3, DesiredNumberScheduled: 5, CurrentNumberScheduled: 4, NumberMisscheduled: 1,
		NumberReady: 3, NumberAvailable: 2, NumberUnavailable: 3, UpdatedNumberScheduled: 2,
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("status\n%+v, want\n%+v", got, want)
	}
	if wait != 9*time.Second {
		t.Errorf("look again after %s, want 9s", wait)
	}
}

// TestUpdateGoesOnByItself: nothing tells when a new pod has been ready for long enough beside the old one, which then
// goes.
func TestUpdateGoesOnByItself(t *testing.T) {
	t.Parallel()
	s := scene(t, "n1: new justready, old ready; n2: old ready").rolling(t, "surge=1")
	if _, wait := s.status(true); wait != 9*time.Second {
		t.Errorf("look again after %s, want 9s", wait)
	}
	s.now = s.now.Add(9 * time.Second)
	if got := s.spread().String(); got != "-n1-1" {
		t.Errorf("then %q, want the old pod to go", got)
	}
}

// BenchmarkReconcile is the deciding of one reconcile: where pods belong, the next step of an update, and the status.
func BenchmarkReconcile(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ds := set(nil)
			ds.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "fast"}
			var nodes []*corev1.Node
			var pods []*corev1.Pod
			for i := range n {
				nodes = append(nodes, node(fmt.Sprint("n", i), map[string]string{"disk": "fast"}))
				p := podFor(ds, "new", nodes[i].Name)
				p.Name, p.Spec.NodeName = fmt.Sprint("p", i), nodes[i].Name
				pods = append(pods, p)
			}
			for b.Loop() {
				s := &state{ds: ds, hash: "new", nodes: nodes, pods: byNode(pods), now: start}
				s.spread()
				s.update()
				s.status(true)
			}
		})
	}
}
