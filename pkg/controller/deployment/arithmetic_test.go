package deployment

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func deploy(n int32, surge, unavailable string) *appsv1.Deployment {
	s, u := intstr.Parse(surge), intstr.Parse(unavailable)
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Replicas: &n,
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &s, MaxUnavailable: &u}},
	}}
}

// rs is a ReplicaSet with n replicas wanted, of which avail are available; age orders several.
func rs(name string, age int, n, avail int32) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(1000-age), 0))},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &n},
		Status:     appsv1.ReplicaSetStatus{Replicas: n, AvailableReplicas: avail, ReadyReplicas: avail},
	}
}

// unreported is the ReplicaSet before its status follows a change.
func unreported(rs *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	rs.Generation = rs.Status.ObservedGeneration + 1
	return rs
}

func show(ts []target) string {
	s := ""
	for _, t := range ts {
		s += fmt.Sprintf("%s=%d ", t.rs.Name, t.replicas)
	}
	return s
}

// TestLimits follows the documentation of maxSurge (rounded up) and maxUnavailable (rounded down).
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n                  int32
		surge, unavailable string
		wantS, wantU       int32
	}{
		{10, "25%", "25%", 3, 2}, {1, "25%", "25%", 1, 0}, {4, "1", "0", 1, 0}, {4, "0", "0", 0, 1},
		{3, "0%", "10%", 0, 1}, {2, "0", "5", 0, 2}, {0, "1", "1", 1, 0},
	} {
		if s, u := limits(deploy(c.n, c.surge, c.unavailable)); s != c.wantS || u != c.wantU {
			t.Errorf("limits(%d, %s, %s) = %d, %d, want %d, %d", c.n, c.surge, c.unavailable, s, u, c.wantS, c.wantU)
		}
	}
}

func TestNewReplicas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		n            int32
		surge        string
		old, current int32
		want         int32
	}{
		{"first rollout", 10, "25%", 0, 0, 10}, {"surge only", 10, "25%", 10, 0, 3},
		{"room by shrunk old", 10, "25%", 8, 3, 5},
		{"never above the wanted", 10, "100%", 1, 9, 10}, {"no room", 10, "0", 10, 0, 0},
	} {
		all := []*appsv1.ReplicaSet{rs("old", 9, c.old, c.old), rs("new", 1, c.current, 0)}
		if got := newReplicas(deploy(c.n, c.surge, "0"), all, c.current); got != c.want {
			t.Errorf("%s: newReplicas = %d, want %d", c.name, got, c.want)
		}
	}
}

func TestShrinkOld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		d    *appsv1.Deployment
		next *appsv1.ReplicaSet
		old  []*appsv1.ReplicaSet
		want string
	}{
		{"new not available yet", deploy(10, "3", "0"), rs("n", 0, 3, 0), []*appsv1.ReplicaSet{rs("o", 1, 10, 10)}, ""},
		{"as new become available", deploy(10, "3", "0"), rs("n", 0, 3, 2), []*appsv1.ReplicaSet{rs("o", 1, 10, 10)},
			"o=8 "},
		{"maxUnavailable at once", deploy(10, "0", "2"), rs("n", 0, 0, 0), []*appsv1.ReplicaSet{rs("o", 1, 10, 10)},
			"o=8 "},
		{"broken old first", deploy(10, "3", "0"), rs("n", 0, 3, 3),
			[]*appsv1.ReplicaSet{rs("a", 9, 8, 8), rs("b", 1, 2, 0)}, "a=7 b=0 "},
		{"oldest first", deploy(4, "4", "0"), rs("n", 0, 4, 2),
			[]*appsv1.ReplicaSet{rs("b", 1, 2, 2), rs("a", 9, 2, 2)}, "a=0 "},
		{"finished", deploy(4, "1", "0"), rs("n", 0, 4, 4), []*appsv1.ReplicaSet{rs("o", 1, 1, 1)}, "o=0 "},
		{"a status that still counts what goes", deploy(5, "0", "3"), rs("n", 0, 1, 0),
			[]*appsv1.ReplicaSet{rs("o", 1, 4, 5)}, "o=2 "},
		{"a status of another size", deploy(10, "3", "0"), rs("n", 0, 3, 3),
			[]*appsv1.ReplicaSet{unreported(rs("o", 1, 10, 10))}, ""},
		{"a new one's status of another size", deploy(10, "3", "0"), unreported(rs("n", 0, 3, 3)),
			[]*appsv1.ReplicaSet{rs("o", 1, 10, 10)}, ""},
		{"nothing old", deploy(4, "1", "0"), rs("n", 0, 4, 4), []*appsv1.ReplicaSet{rs("o", 1, 0, 0)}, ""},
	} {
		if got := show(shrinkOld(c.d, c.next, c.old)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestRolloutConvergesWithinLimits plays whole rollouts: whatever the limits, it ends, and on the way there are never
// more pods than replicas+surge nor fewer available ones than replicas-unavailable.
func TestRolloutConvergesWithinLimits(t *testing.T) {
	t.Parallel()
	for _, n := range []int32{1, 2, 5, 10, 33} {
		for _, lim := range [][2]string{{"25%", "25%"}, {"1", "0"}, {"0", "1"}, {"100%", "0"}, {"0", "100%"}} {
			d := deploy(n, lim[0], lim[1])
			surge, unavailable := limits(d)
			old, next := rs("o", 1, n, n), rs("n", 0, 0, 0)
			for step := 0; *old.Spec.Replicas > 0 || next.Status.AvailableReplicas < n; step++ {
				if step > 500 {
					t.Fatalf("n=%d limits=%v: no end: old %d new %d", n, lim, *old.Spec.Replicas, *next.Spec.Replicas)
				}
				up := newReplicas(d, []*appsv1.ReplicaSet{old, next}, *next.Spec.Replicas)
				next.Spec.Replicas = &up
				for _, x := range shrinkOld(d, next, []*appsv1.ReplicaSet{old}) {
					x.rs.Spec.Replicas, x.rs.Status.AvailableReplicas = new(x.replicas),
						min(x.rs.Status.AvailableReplicas, x.replicas)
				}
				if total := *old.Spec.Replicas + *next.Spec.Replicas; total > n+surge {
					t.Fatalf("n=%d limits=%v: %d pods", n, lim, total)
				}
				if ok := available(old) + available(next); ok < n-unavailable {
					t.Fatalf("n=%d limits=%v: %d available", n, lim, ok)
				}
				if next.Status.AvailableReplicas < *next.Spec.Replicas {
					next.Status.AvailableReplicas++
				}
			}
		}
	}
}

// TestProportionalScaling has the example of the Deployment documentation: 10 replicas, maxSurge 3, maxUnavailable 2, a
// rollout that is stuck at 8 old and 5 new; scaling to 15 adds 3 to the larger and 2 to the other.
func TestProportionalScaling(t *testing.T) {
	t.Parallel()
	d := deploy(15, "3", "2")
	old, next := rs("old", 9, 8, 8), rs("new", 1, 5, 0)
	for _, r := range []*appsv1.ReplicaSet{old, next} {
		r.Annotations = map[string]string{desiredAnnotation: "10", maxAnnotation: "13"}
	}
	if got := show(scaleTargets(d, next, []*appsv1.ReplicaSet{old})); got != "old=11 new=7 " {
		t.Errorf("up: %q", got)
	}
	d = deploy(0, "3", "2")
	if got := show(scaleTargets(d, next, []*appsv1.ReplicaSet{old})); got != "old=0 new=0 " {
		t.Errorf("to zero: %q", got)
	}
	d = deploy(7, "0", "1")
	if got := show(scaleTargets(d, rs("new", 1, 3, 3), nil)); got != "new=7 " {
		t.Errorf("single: %q", got)
	}
}

func TestSurplusKeepsTheNewestHistory(t *testing.T) {
	t.Parallel()
	d := deploy(1, "1", "0")
	d.Spec.RevisionHistoryLimit = new(int32(2))
	var old []*appsv1.ReplicaSet
	for i, rev := range []string{"3", "1", "4", "2"} {
		r := rs("r"+rev, i, 0, 0)
		r.Annotations = map[string]string{revisionAnnotation: rev}
		old = append(old, r)
	}
	got := surplus(d, old)
	if len(got) != 2 || got[0].Name != "r1" || got[1].Name != "r2" {
		t.Errorf("surplus = %v", got)
	}
	old[1].Spec.Replicas = new(int32(1))
	if got := surplus(d, old); len(got) != 1 || got[0].Name != "r2" {
		t.Errorf("a ReplicaSet with replicas must stay: %v", got)
	}
}

func TestHistoryStaysBounded(t *testing.T) {
	t.Parallel()
	h := ""
	for i := range int64(3000) {
		h = appendHistory(h, i)
	}
	if len(h) > maxHistoryLength {
		t.Errorf("history has %d characters", len(h))
	}
	if h[len(h)-4:] != "2999" {
		t.Errorf("the newest revision is missing: %s", h[len(h)-20:])
	}
}

func TestJudgeProgress(t *testing.T) {
	t.Parallel()
	now := time.Unix(10_000, 0)
	d := deploy(2, "1", "0")
	d.Name, d.Spec.ProgressDeadlineSeconds = "web", new(int32(60))
	next := rs("web-1", 0, 2, 0)
	cond := func(st appsv1.DeploymentStatus) string {
		c := condition(st, appsv1.DeploymentProgressing)
		if c == nil {
			return "none"
		}
		return string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	judge := func(at time.Time) appsv1.DeploymentStatus {
		st := countStatus(d, []*appsv1.ReplicaSet{next}, next, at)
		judgeProgress(d, &st, []*appsv1.ReplicaSet{next}, next, at)
		d.Status = st
		return st
	}
	if got := cond(judge(now)); got != `True ReplicaSetUpdated: ReplicaSet "web-1" is progressing.` {
		t.Error(got)
	}
	if got := cond(judge(now.Add(30 * time.Second))); got !=
		`True ReplicaSetUpdated: ReplicaSet "web-1" is progressing.` {
		t.Error(got)
	}
	if got := cond(judge(now.Add(61 * time.Second))); got !=
		`False ProgressDeadlineExceeded: ReplicaSet "web-1" has timed out progressing.` {
		t.Error(got)
	}
	next.Status.AvailableReplicas, next.Status.ReadyReplicas = 2, 2
	if got := cond(judge(now.Add(70 * time.Second))); got !=
		`True NewReplicaSetAvailable: ReplicaSet "web-1" has successfully progressed.` {
		t.Error(got)
	}
	next.Status.AvailableReplicas = 1
	st := judge(now.Add(time.Hour))
	if got := cond(st); got != `True NewReplicaSetAvailable: ReplicaSet "web-1" has successfully progressed.` {
		t.Error("a finished rollout does not time out: ", got)
	}
	if untilDeadline(d, st, now) != 0 {
		t.Error("a finished rollout has no deadline")
	}
}

// TestKeepAvailable: a size that shrinks in the middle of a rollout takes replicas that do not serve first, as far as
// the minimum needs it.
func TestKeepAvailable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		d              *appsv1.Deployment
		old, next      *appsv1.ReplicaSet
		toOld, toNext  int32
		wantOld, wants int32
	}{
		{"the new ones do not serve", deploy(3, "1", "0"), rs("o", 1, 5, 5), rs("n", 0, 5, 0), 2, 2, 3, 1},
		{"enough serve", deploy(3, "1", "2"), rs("o", 1, 5, 5), rs("n", 0, 5, 0), 2, 2, 2, 2},
		{"all serve", deploy(3, "1", "0"), rs("o", 1, 5, 5), rs("n", 0, 5, 5), 2, 2, 2, 2},
		{"none serves", deploy(3, "1", "0"), rs("o", 1, 5, 0), rs("n", 0, 5, 0), 2, 2, 2, 2},
	} {
		got := []target{{c.old, c.toOld}, {c.next, c.toNext}}
		if keepAvailable(c.d, got); got[0].replicas != c.wantOld || got[1].replicas != c.wants {
			t.Errorf("%s: %s", c.name, show(got))
		}
	}
}
