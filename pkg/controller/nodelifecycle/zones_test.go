package nodelifecycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func evictions() Evictions {
	return Evictions{Rate: 0.1, SecondaryRate: 0.01, Threshold: 0.55, LargeZone: 50}
}

// TestEvictionRates follows https://kubernetes.io/docs/concepts/architecture/nodes/#rate-limits-on-eviction.
func TestEvictionRates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		ready, failed int
		want          float32
	}{
		{"one of three", 2, 1, 0.1},
		{"two of three: no more than two say nothing", 1, 2, 0.1},
		{"unhealthy and small", 2, 3, 0},
		{"at the threshold", 9, 11, 0},
		{"just healthy", 10, 11, 0.1},
		{"unhealthy and large", 20, 31, 0.01},
		{"unhealthy, as large as the threshold", 20, 30, 0},
		{"nobody is ready", 0, 5, 0.1},
	} {
		if got := evictions().perSecond(c.ready, c.failed); got != c.want {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}

// cluster reads "a: + + -; b: -", nodes of zones that are ready or not, and names them a0, a1, …; -! counts for
// nothing.
func cluster(text string) (out []*corev1.Node) {
	for entry := range strings.SplitSeq(text, ";") {
		name, list, _ := strings.Cut(strings.TrimSpace(entry), ":")
		for i, state := range strings.Fields(list) {
			ready := corev1.ConditionTrue
			if state[0] == '-' {
				ready = corev1.ConditionUnknown
			}
			n := node(ready)
			n.Name, n.Labels = fmt.Sprint(name, i), map[string]string{corev1.LabelTopologyZone: name}
			if strings.HasSuffix(state, "!") {
				n.Labels[excluded] = ""
			}
			n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Unix(int64(100-i), 0))
			out = append(out, n)
		}
	}
	return out
}

func TestSurvey(t *testing.T) {
	t.Parallel()
	type step struct {
		after     time.Duration
		nodes     string
		want      string // the nodes given up, or taken back, in order of their names
		recovered bool
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"one every ten seconds, the longest silent first", []step{
			{0, "a: + + + - -", "a4", false}, {5 * time.Second, "a: + + + - -", "", false},
			{6 * time.Second, "a: + + + - -", "a3", false}, {time.Minute, "a: + + + - -", "", false}}},
		{"each zone has its own pace", []step{{0, "a: + -; b: + - -", "a1 b2", false}}},
		{"a small unhealthy zone keeps all",
			[]step{{0, "a: + - - -", "", false}, {time.Hour, "a: + - - -", "", false}}},
		{"a zone without any ready node beside a healthy one", []step{{0, "a: - - -; b: +", "a2", false}}},
		{"all nodes at once: none, and those given up are taken back", []step{
			{0, "a: + -; b: +", "a1", false}, {time.Second, "a: - -; b: -", "a0 a1 b0", false},
			{time.Hour, "a: - -; b: -", "", false},
			{time.Second, "a: + -; b: +", "a1", true}}},
		{"one node alone", []step{{0, "a: -", "a0", false}, {time.Hour, "a: -", "", false}}},
		{"nodes that count for nothing", []step{{0, "a: +! -", "a1", false}, {0, "a: + -!", "a1", true}}},
		{"a node that comes back and fails again waits its turn", []step{
			{0, "a: + -", "a1", false}, {time.Second, "a: + +", "", false}, {time.Second, "a: + -", "", false},
			{9 * time.Second, "a: + -", "a1", false}}},
	} {
		z, now := newZones(evictions()), time.Unix(1000, 0)
		for i, s := range c.steps {
			now = now.Add(s.after)
			changed, recovered := z.survey(cluster(s.nodes), now)
			slices.Sort(changed)
			if got := strings.Join(changed, " "); got != s.want || recovered != s.recovered {
				t.Errorf("%s, step %d: %q recovered %v, want %q %v", c.name, i, got, recovered, s.want, s.recovered)
			}
		}
	}
}

// TestSurveyKeepsWhatItFinds: after a restart the nodes that were given up stay so, and cost no turn.
func TestSurveyKeepsWhatItFinds(t *testing.T) {
	t.Parallel()
	z, nodes := newZones(evictions()), cluster("a: + - -")
	nodes[2].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	changed, _ := z.survey(nodes, time.Unix(1000, 0))
	if !slices.Equal(changed, []string{"a1"}) || !z.given["a2"] {
		t.Errorf("changed %v, given %v", changed, z.given)
	}
}

// TestNextTurn: the next node's turn comes as the rate says, although nothing else has the zones looked at so soon.
func TestNextTurn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, nodes string
		rate        float32
		want        time.Duration
	}{
		{"two in a second", "a: + + + - -", 2, 501 * time.Millisecond},
		{"more than anybody can take", "a: + + + - -", 1000, soonest},
		{"one in ten seconds", "a: + + + - -", 0.1, 10*time.Second + time.Millisecond},
		{"nobody waits", "a: + + + -", 2, 0},
		{"nobody may", "a: + + + - -", 0, 0},
		{"all nodes at once", "a: - -", 2, 0},
	} {
		e := evictions()
		e.Rate = c.rate
		z, now := newZones(e), time.Unix(1000, 0)
		z.survey(cluster(c.nodes), now)
		got := z.next(now)
		if got.Round(time.Millisecond) != c.want {
			t.Errorf("%s: in %s, want %s", c.name, got, c.want)
		}
		if changed, _ := z.survey(cluster(c.nodes), now.Add(got)); got > 0 && len(changed) != 1 {
			t.Errorf("%s: then %v are given up, want one", c.name, changed)
		}
	}
}

func BenchmarkSurvey(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			nodes := cluster("a:" + strings.Repeat(" +", n/2) + "; b:" + strings.Repeat(" +", n/2-1) + " -")
			z, now := newZones(evictions()), time.Unix(1000, 0)
			for b.Loop() {
				z.survey(nodes, now)
			}
		})
	}
}
