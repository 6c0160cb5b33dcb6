package statefulset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// stateOf is a set "web" of n replicas that goes from revision a to revision b. pods are words
// "<number><state><revision>"; the state is + running and ready for a minute, = ready for five seconds, - running, .
// pending, ! going away, x failed, o succeeded, ? healthy without the labels that name it.
func stateOf(n int32, pods string, change ...func(*appsv1.StatefulSet)) *state {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &n, ServiceName: "svc", PodManagementPolicy: appsv1.OrderedReadyPodManagement,
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
		}}
	for _, f := range change {
		f(set)
	}
	s := &state{set: set, now: now, current: revision{"a", &corev1.PodTemplateSpec{}},
		update: revision{"b", &corev1.PodTemplateSpec{}}}
	for _, word := range strings.Fields(pods) {
		var number int
		var how rune
		var rev string
		if _, err := fmt.Sscanf(word, "%d%c%s", &number, &how, &rev); err != nil {
			panic(err)
		}
		s.pods = append(s.pods, podAs(set, number, how, rev))
	}
	return s
}

func podAs(set *appsv1.StatefulSet, number int, how rune, rev string) *corev1.Pod {
	p := podFor(set, revision{rev, &corev1.PodTemplateSpec{}}, number)
	p.Status.Phase = corev1.PodRunning
	ready := func(status corev1.ConditionStatus, since time.Duration) {
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-since))}}
	}
	ready(corev1.ConditionTrue, time.Minute)
	switch how {
	case '=':
		ready(corev1.ConditionTrue, 5*time.Second)
	case '-':
		ready(corev1.ConditionFalse, time.Minute)
	case '.':
		p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	case '!':
		p.DeletionTimestamp = &metav1.Time{Time: now}
	case 'x':
		p.Status = corev1.PodStatus{Phase: corev1.PodFailed}
	case 'o':
		p.Status = corev1.PodStatus{Phase: corev1.PodSucceeded}
	case '?':
		delete(p.Labels, appsv1.PodIndexLabel)
	}
	return p
}

// text writes a plan as words: +<number><revision> create, -<number> delete, ~<number> repair.
func (p plan) text(set *appsv1.StatefulSet) string {
	var out []string
	add := func(format string, pods []*corev1.Pod) {
		for _, o := range pods {
			n, _ := ordinalOf(set, o)
			out = append(out, strings.TrimSuffix(fmt.Sprintf(format, n, revisionOf(o)),
				"%!(EXTRA string="+revisionOf(o)+")"))
		}
	}
	add("+%d%s", p.create)
	add("-%d", p.delete)
	add("~%d", p.repair)
	return strings.Join(out, " ")
}

func parallel(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }

func onDelete(s *appsv1.StatefulSet) {
	s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
}

func start(n int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: n} }
}

func minReady(s *appsv1.StatefulSet) { s.Spec.MinReadySeconds = 10 }

func partition(n int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) {
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &n}
	}
}

func unavailable(v string) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) {
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{
			MaxUnavailable: new(intstr.Parse(v))}
	}
}

// TestPlan follows https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/, section by section. What it
// says of unavailable pods is what a kube-controller-manager v1.37.2 does with the same pods.
func TestPlan(t *testing.T) {
	t.Parallel()
	with := func(f ...func(*appsv1.StatefulSet)) []func(*appsv1.StatefulSet) { return f }
	for _, c := range []struct {
		name string
		n    int32
		set  []func(*appsv1.StatefulSet)
		pods string
		want string
	}{
		{"deployment guarantees: the first", 3, nil, "", "+0b"},
		{"the next waits for running", 3, nil, "0.b", ""},
		{"the next waits for ready", 3, nil, "0-b", ""},
		{"the next", 3, nil, "0+b", "+1b"},
		{"a gap is filled before anything else", 3, nil, "0+b 2-b", "+1b"},
		{"nothing follows while a pod before is unhealthy", 3, nil, "0-b 1+b", ""},
		{"the next waits for minReadySeconds", 2, with(minReady), "0=b", ""},
		{"minReadySeconds over", 2, with(minReady), "0+b", "+1b"},
		{"a failed pod is replaced under its name", 2, nil, "0xb 1+b", "-0"},
		{"a pod that ended well too", 2, nil, "0+b 1ob", "-1"},
		{"one that goes away is waited for", 2, nil, "0!b 1+b", ""},
		{"ordinals.start", 2, with(start(5)), "5+b", "+6b"},
		{"a raised start: first the new places, then the old pods", 2, with(start(1)), "0+b 1+b", "+2b"},
		{"pods before the start are surplus", 2, with(start(1)), "0+b 1+b 2+b", "-0"},

		{"scaling down goes from the highest", 1, nil, "0+b 1+b 2+b", "-2"},
		{"and waits until it is gone", 1, nil, "0+b 1+b 2!b", ""},
		{"and for all that stay", 1, nil, "0-b 1+b 2+b", ""},
		{"to zero", 0, nil, "0+b", "-0"},
		{"an unhealthy pod stays while one before is unhealthy", 0, nil, "0-b 1-b 2-b", ""},
		{"a healthy one may go then", 0, nil, "0-b 1-b 2+b", "-2"},
		{"the first unhealthy one goes", 0, nil, "0+b 1-b", "-1"},
		{"nothing is updated while pods are surplus", 1, nil, "0+a 1!b", ""},

		{"parallel: all at once", 3, with(parallel), "1-b", "+0b +2b"},
		{"parallel: down at once", 1, with(parallel), "0-b 1-b 2!b 3.b", "-3 -1"},
		{"parallel: an ended pod is replaced, others are made meanwhile", 3, with(parallel), "0xb 1+b", "+2b -0"},
		{"parallel: updates go one by one", 3, with(parallel), "0+a 1+a 2+a", "-2"},
		{"parallel: what is unavailable is replaced first", 3, with(parallel), "0-a 1+a 2+b", "-0"},
		{"parallel: also with one unavailable that is updated", 3, with(parallel), "0-a 1+a 2-b", "-0"},
		{"parallel: which stops what is available", 3, with(parallel), "0+a 1+a 2-b", ""},
		{"parallel: all that are unavailable at once", 4, with(parallel), "0-a 1-a 2-a 3-a", "-3 -2 -1 -0"},
		{"parallel: a pod that goes counts", 4, with(parallel), "0+a 1!a 2+a 3+a", ""},

		{"rolling update: the highest first", 3, nil, "0+a 1+a 2+a", "-2"},
		{"it comes back updated", 3, nil, "0+a 1+a", "+2b"},
		{"the next waits for it", 3, nil, "0+a 1+a 2-b", ""},
		{"and for minReadySeconds", 3, with(minReady), "0+a 1+a 2=b", ""},
		{"the next", 3, nil, "0+a 1+a 2+b", "-1"},
		{"done", 3, nil, "0+b 1+b 2+b", ""},
		{"a broken template needs a hand", 3, nil, "0+a 1+a 2-a", ""},
		{"partition", 3, with(partition(2)), "0+a 1+a 2+a", "-2"},
		{"partition reached", 3, with(partition(2)), "0+a 1+a 2+b", ""},
		{"below the partition pods come back as they were", 3, with(partition(2)), "1+a 2+b", "+0a"},
		{"from it on they come back updated", 3, with(partition(1)), "0+a 2+b", "+1b"},
		{"the partition counts from the start", 2, with(partition(1), start(4)), "4+a 5+a", "-5"},
		{"a partition above all: nothing", 2, with(partition(7)), "0+a 1+a", ""},
		{"maxUnavailable", 4, with(unavailable("2")), "0+a 1+a 2+a 3+a", "-3 -2"},
		{"maxUnavailable in percent, rounded down", 4, with(unavailable("70%")), "0+a 1+a 2+a 3+a", "-3 -2"},
		{"maxUnavailable in percent is at least one", 4, with(unavailable("10%")), "0+a 1+a 2+a 3+a", "-3"},
		{"maxUnavailable counts all", 4, with(unavailable("2"), parallel), "0-b 1+a 2+a 3+a", "-3"},
		{"what is unavailable is replaced for nothing", 4, with(unavailable("2"), parallel), "0+a 1+a 2-a 3+a",
			"-3 -2"},
		{"wherever it is", 4, with(unavailable("2"), parallel), "0+a 1-a 2+a 3+a", "-3 -1"},
		{"and leaves less for others", 4, with(unavailable("2"), parallel), "0-a 1+a 2+a 3-a", "-3 -0"},
		{"below the partition it only counts", 4, with(unavailable("1"), parallel, func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate.Partition = new(int32(2))
		}), "0-a 1+a 2+a 3+a", ""},
		{"maxUnavailable of an ordered set waits for all", 4, with(unavailable("2")), "0+a 1+a 2+a 3-a", ""},
		{"and fills one by one", 4, with(unavailable("2")), "0+a 1+a", "+2b"},
		{"maxUnavailable reached", 4, with(unavailable("2"), parallel), "0+a 1+a 2-b 3!b", ""},

		{"on delete: nothing is deleted", 2, with(onDelete), "0+a 1+a", ""},
		{"on delete: they come back updated", 2, with(onDelete), "0+a", "+1b"},

		{"identity is repaired, also of unhealthy sets", 3, nil, "0?b 1-b", "~0"},
		{"and holds nothing up", 2, nil, "0?b", "+1b ~0"},
	} {
		s := stateOf(c.n, c.pods, c.set...)
		if got := s.plan().text(s.set); got != c.want {
			t.Errorf("%s: %d replicas of %q: got %q, want %q", c.name, c.n, c.pods, got, c.want)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	type counts struct{ replicas, ready, available, current, updated int32 }
	for _, c := range []struct {
		name    string
		n       int32
		set     []func(*appsv1.StatefulSet)
		pods    string
		want    counts
		current string
		wait    time.Duration
	}{
		{"none", 2, nil, "", counts{}, "a", 0},
		{"under way", 3, nil, "0+a 1+a 2-b", counts{3, 2, 2, 2, 1}, "a", 0},
		{"a pod that goes is of no revision", 3, nil, "0+a 1!a 2+b", counts{3, 3, 3, 1, 1}, "a", 0},
		{"complete: the update becomes current", 2, nil, "0+b 1+b", counts{2, 2, 2, 2, 2}, "b", 0},
		{"not while a pod is unready", 2, nil, "0+b 1-b", counts{2, 1, 1, 0, 2}, "a", 0},
		{"not while there are too many", 1, nil, "0+b 1+a", counts{2, 2, 2, 1, 1}, "a", 0},
		{"complete on delete", 1, []func(*appsv1.StatefulSet){onDelete}, "0+b", counts{1, 1, 1, 1, 1}, "b", 0},
		{"on delete, not while a pod is unready", 2, []func(*appsv1.StatefulSet){onDelete}, "0-b 1+b",
			counts{2, 1, 1, 0, 2}, "a", 0},
		{"of none all are updated", 0, nil, "", counts{}, "b", 0},
		{"available later", 2, []func(*appsv1.StatefulSet){minReady}, "0+a 1=a", counts{2, 2, 1, 2, 0}, "a",
			5 * time.Second},
	} {
		s := stateOf(c.n, c.pods, c.set...)
		st, wait := s.status(true)
		got := counts{st.Replicas, st.ReadyReplicas, st.AvailableReplicas, st.CurrentReplicas, st.UpdatedReplicas}
		if got != c.want || st.CurrentRevision != c.current || st.UpdateRevision != "b" || wait != c.wait ||
			*st.CollisionCount != 0 {
			t.Errorf("%s: got %+v current %s, wait %s", c.name, got, st.CurrentRevision, wait)
		}
	}
}
