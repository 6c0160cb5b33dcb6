package eviction

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/eviction/pressure"
	"bonsai/pkg/kubelet/runtime"
)

// machine is a node of which the test says what is left; each pod uses what its priority says.
type machine struct {
	left    int64
	about   pressure.Signal // what is left of
	freed   int64           // what removing what is unused gives back
	known   bool
	notes   []string
	pods    []*corev1.Pod
	gone    bool // of the pod that was evicted last, nothing is left
	now     time.Time
	slow    time.Duration // that finding out what pods use takes
	freeing int64         // what the kernel frees meanwhile
	silent  bool          // the runtime does not answer
	loses   bool          // meanwhile nobody can say any more what is left
	lost    bool
	also    pressure.Observations // what is left of other things
	aged    []string
}

func (m *machine) Observe(context.Context) (pressure.Observations, Disks, error) {
	var err error
	if m.silent {
		err = errors.New("the runtime is silent")
	}
	seen := pressure.Observations{}
	maps.Copy(seen, m.also)
	if !m.lost {
		seen[m.about] = pressure.Observation{Available: m.left, Capacity: 1000}
	}
	return seen, Disks{}, err
}

func (m *machine) Reclaim(pressure.Signal, Disks) []func(context.Context) error {
	return []func(context.Context) error{func(context.Context) error {
		m.left, m.freed, m.notes = m.left+m.freed, 0, append(m.notes, "reclaim")
		return nil
	}}
}

func (m *machine) Use(_ context.Context, pods []*corev1.Pod, _ pressure.Signal, _ Disks) ([]pressure.Candidate, error) {
	var out []pressure.Candidate
	m.now, m.left, m.lost = m.now.Add(m.slow), m.left+m.freeing, m.loses
	for _, p := range pods {
		out = append(out, pressure.Candidate{Pod: p, Use: pressure.Use{corev1.ResourceEphemeralStorage: 1}})
	}
	return out, nil
}

func (m *machine) Kill(_ context.Context, pod *corev1.Pod) error {
	m.notes = append(m.notes, "kill "+pod.Name)
	return nil
}

func (m *machine) took() string {
	s := strings.Join(m.notes, ", ")
	m.notes = nil
	return s
}

func pod(uid types.UID, priority int32) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid},
		Spec: corev1.PodSpec{Priority: &priority}}
}

func setup(t *testing.T, about pressure.Signal, pods ...*corev1.Pod) (*Manager, *machine) {
	t.Helper()
	n := &machine{about: about, known: true, left: 1000, pods: pods, now: time.Unix(1e6, 0)}
	m, err := New(Config{Conditions: &Conditions{}, Node: n, Ready: func() bool {
		return n.known
	}, Pods: func() []*corev1.Pod { return n.pods }, Changed: func() { n.notes = append(n.notes, "changed") },
		Policy: pressure.Policy{
			Thresholds: []pressure.Threshold{{Signal: about, Value: pressure.Value{Amount: 100}}},
			Transition: time.Minute},
		Reclaiming: func(name corev1.ResourceName) { n.notes = append(n.notes, "reclaiming "+string(name)) },
		Evict: func(uid types.UID, why runtime.Ending) bool {
			if uid == "ending" {
				return false
			}
			n.notes = append(n.notes, "evict "+string(uid)+" "+why.Reason+" "+why.Signal)
			return true
		},
		Evicted: func(signal pressure.Signal, age time.Duration) {
			n.aged = append(n.aged, string(signal)+" "+age.String())
		},
		Gone: func(types.UID) bool { return n.gone },
		Now:  func() time.Time { return n.now }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return m, n
}

// What nobody uses goes before any pod does; then one pod after the other, each when the one before is gone or does not
// go.
func TestLook(t *testing.T) {
	t.Parallel()
	static := pod("static", -1)
	static.Annotations = map[string]string{runtime.AnnotationConfigSource: runtime.SourceFile}
	m, n := setup(t, pressure.NodeFsAvailable, pod("ending", 1), pod("first", 2), pod("second", 3),
		pod("critical", runtime.SystemCriticalPriority), static)
	step := func(what, want string) {
		t.Helper()
		if err := m.look(t.Context()); err != nil {
			t.Error(what, err)
		}
		if got := n.took(); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	n.slow = time.Second
	step("enough", "")
	n.left, n.freed, n.known = 50, 60, false
	step("not all pods are known", "changed")
	n.known = true
	step("what is unused suffices", "reclaiming ephemeral-storage, reclaim")
	n.left = 50
	step("it does not", "reclaiming ephemeral-storage, reclaim, evict first Evicted nodefs.available")
	step("the pod is ending", "")
	n.pods = slices.DeleteFunc(n.pods, func(p *corev1.Pod) bool { return p.UID == "first" })
	step("it has ended, and its volumes still lie on the disk", "")
	n.gone = true
	step("it is gone", "reclaiming ephemeral-storage, reclaim, evict second Evicted nodefs.available")
	n.gone, n.now = false, n.now.Add(patience) // which does not go
	n.pods = n.pods[2:]
	if err := m.look(t.Context()); err == nil {
		t.Error("a critical or a static pod was evicted:", n.took())
	}
	n.took()
	if want := []string{"nodefs.available 1s", "nodefs.available 1s"}; !slices.Equal(n.aged, want) {
		t.Errorf("evictions by observations of that age: %v, want %v", n.aged, want)
	}
	n.left = 1000
	step("enough again, the condition stays", "")
	n.now = n.now.Add(time.Minute)
	step("a while later it goes", "changed")
}

// A pod is not evicted for what was true before the kernel ended another one, however slow the machine was, and
// whatever else the machine has little of.
func TestOldNews(t *testing.T) {
	t.Parallel()
	disk := pressure.Threshold{Signal: pressure.NodeFsAvailable, Value: pressure.Value{Amount: 100}}
	reclaims, soft := disk, disk
	reclaims.MinReclaim.Amount = 500
	soft.Grace = time.Hour
	const spared, evicted = "changed, reclaiming memory, reclaim",
		"changed, reclaiming memory, reclaim, evict pod Evicted memory.available"
	for name, c := range map[string]struct {
		freeing int64
		loses   bool
		other   pressure.Threshold
		disk    int64
		want    string
		age     time.Duration // of what the eviction is decided by
	}{
		"enough is freed":                      {900, false, disk, 1000, spared, 0},
		"too little is freed":                  {10, false, disk, 1000, evicted, 0},
		"what is left is not known any more":   {900, true, disk, 1000, evicted, time.Minute},
		"the disk has less than it should get": {900, false, reclaims, 300, spared, 0},
		"the disk has little, but may":         {900, false, soft, 50, spared, 0},
	} {
		m, n := setup(t, pressure.MemoryAvailable, pod("pod", 0))
		m.cfg.Policy.Thresholds = append(m.cfg.Policy.Thresholds, c.other)
		n.also = pressure.Observations{pressure.NodeFsAvailable: {Available: c.disk, Capacity: 1000}}
		n.left, n.slow, n.freeing, n.silent, n.loses = 50, time.Minute, c.freeing, true, c.loses
		if err := m.look(t.Context()); err != nil {
			t.Error(err)
		}
		if got := n.took(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if want := "memory.available " + c.age.String(); c.want == evicted && !slices.Equal(n.aged, []string{want}) {
			t.Errorf("%s: evicted by observations of the age %q, want %q", name, n.aged, want)
		}
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	m, n := setup(t, pressure.NodeFsAvailable)
	plain, critical, tolerant := pod("p", 0), pod("c", runtime.SystemCriticalPriority), pod("t", 0)
	burstable := pod("b", 0)
	burstable.Status.QOSClass = corev1.PodQOSBurstable
	tolerant.Spec.Tolerations = []corev1.Toleration{
		{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists}}
	refused := func() string {
		var out []string
		for _, p := range []*corev1.Pod{plain, critical, tolerant, burstable} {
			if m.cfg.Conditions.Refuse(p) != "" {
				out = append(out, p.Name)
			}
		}
		return strings.Join(out, " ")
	}
	if got := refused(); got != "" {
		t.Error("without pressure:", got)
	}
	m.show([]corev1.NodeConditionType{corev1.NodeMemoryPressure})
	if got := refused(); got != "p" || m.cfg.Conditions.Refuse(plain) != "The node had condition: [MemoryPressure]. " {
		t.Error("memory:", got, m.cfg.Conditions.Refuse(plain))
	}
	m.show([]corev1.NodeConditionType{corev1.NodeDiskPressure})
	if got := refused(); got != "p t b" {
		t.Error("disk:", got)
	}
	n.took()
}

// A pod that takes the memory, or the process numbers, and that the runtime does not end in time, is killed by the
// kernel. Only memory and numbers keep the runtime from its work, and only a hard threshold is in such a hurry.
func TestOverdue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal pressure.Signal
		grace  time.Duration
		want   string
	}{
		{pressure.MemoryAvailable, 0, "kill greedy"},
		{pressure.AllocatableMemoryAvailable, 0, "kill greedy"},
		{pressure.PIDAvailable, 0, "kill greedy"},
		{pressure.MemoryAvailable, time.Nanosecond, ""},
		{pressure.NodeFsAvailable, 0, ""},
	} {
		m, n := setup(t, c.signal, pod("greedy", 0))
		m.cfg.Policy.Thresholds[0].Grace = c.grace
		look := func() string {
			t.Helper()
			if err := m.look(t.Context()); err != nil {
				t.Error(err)
			}
			return n.took()
		}
		n.left = 50
		look()
		n.now = n.now.Add(time.Second) // a soft threshold is passed for its time
		look()
		if m.leaving == nil {
			t.Fatal(c.signal, "no pod was evicted")
		}
		n.now = m.since.Add(overdue - 1)
		if got := look(); got != "" {
			t.Errorf("%s, in time: %q", c.signal, got)
		}
		for range 2 { // as long as something is left of it
			n.now = n.now.Add(time.Second)
			if got := look(); got != c.want {
				t.Errorf("%s, grace %s, overdue: %q, want %q", c.signal, c.grace, got, c.want)
			}
		}
		n.gone, n.left = true, 1000
		if got := look(); got != "" {
			t.Errorf("%s, gone: %q", c.signal, got)
		}
	}
}
