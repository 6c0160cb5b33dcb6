package pressure

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const mi = 1 << 20

// The messages are those of Kubernetes 1.36.3, as it gave them for these settings.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	one := func(signal, value string) map[string]string { return map[string]string{signal: value} }
	memory := "memory.available"
	for _, c := range []struct {
		s    Settings
		want string
	}{
		{Settings{Hard: one("nope.x", "5Mi")}, "unsupported eviction signal nope.x"},
		{Settings{Hard: one(memory, "105%")}, "eviction percentage threshold memory.available must be <= 100%: 105%"},
		{Settings{Hard: one(memory, "-5%")}, "eviction percentage threshold memory.available must be >= 0%: -5%"},
		{Settings{Hard: one(memory, "-5Mi")}, "eviction threshold memory.available must be positive: -5Mi"},
		{Settings{Hard: one(memory, "x")},
			"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
		{Settings{Hard: one(memory, "x%")}, `strconv.ParseFloat: parsing "x": invalid syntax`},
		{Settings{Soft: one(memory, "5Mi")},
			"grace period must be specified for the soft eviction threshold memory.available"},
		{Settings{SoftGrace: one(memory, "-5s")},
			"invalid eviction grace period specified: -5s, must be a positive value"},
		{Settings{SoftGrace: one(memory, "x")}, `time: invalid duration "x"`},
		{Settings{SoftGrace: one("nope", "5s")}, "unsupported eviction signal nope"},
		{Settings{MinReclaim: one("nope", "5Mi")}, "unsupported eviction signal nope"},
		{Settings{MinReclaim: one(memory, "-5Mi")}, "negative eviction minimum reclaim specified for memory.available"},
		{Settings{MinReclaim: one(memory, "-5%")},
			"eviction percentage minimum reclaim memory.available must be positive: -5%"},
	} {
		if _, err := Parse(c.s); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.s, err, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := Parse(Settings{PodsLimited: true,
		Hard: map[string]string{"memory.available": "1Mi", "nodefs.available": "10%", "imagefs.available": "0%",
			"nodefs.inodesFree": "100%", "containerfs.available": "5%"},
		Soft: map[string]string{"memory.available": "2Mi"}, SoftGrace: map[string]string{"memory.available": "1m30s"},
		MinReclaim: map[string]string{"memory.available": "3Mi"}})
	want := []Threshold{{Signal: MemoryAvailable, Value: Value{Amount: mi}, MinReclaim: Value{Amount: 3 * mi}},
		{Signal: AllocatableMemoryAvailable, Value: Value{Amount: mi}},
		{Signal: NodeFsAvailable, Value: Value{Percent: 10}},
		{Signal: MemoryAvailable, Value: Value{Amount: 2 * mi}, Grace: 90 * time.Second,
			MinReclaim: Value{Amount: 3 * mi}}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	kept := Reserved(got, corev1.ResourceList{"memory": resource.MustParse("64Mi"),
		"ephemeral-storage": resource.MustParse("1000")})
	if kept.Memory().Value() != mi || kept.StorageEphemeral().Value() != 100 || len(kept) != 2 {
		t.Error("kept", kept)
	}
	if _, err := Parse(Settings{Hard: DefaultHard()}); err != nil {
		t.Error(err)
	}
}

// TestNext follows the memory of a node through a day; each row is a look.
func TestNext(t *testing.T) {
	t.Parallel()
	hard := Threshold{Signal: MemoryAvailable, Value: Value{Amount: 100}, MinReclaim: Value{Amount: 50}}
	soft := Threshold{Signal: MemoryAvailable, Value: Value{Amount: 300}, Grace: time.Minute}
	disk := Threshold{Signal: NodeFsAvailable, Value: Value{Percent: 10}}
	p := Policy{Thresholds: []Threshold{disk, hard, soft}, Transition: 5 * time.Minute}
	var s State
	for _, c := range []struct {
		at           time.Duration
		memory, disk int64
		want         string
	}{
		{0, 300, 100, "[] due "},
		{10 * time.Second, 299, 100, "[MemoryPressure] due "}, // the condition does not wait for the grace period
		{60 * time.Second, 299, 100, "[MemoryPressure] due "},
		{70 * time.Second, 299, 100, "[MemoryPressure] due 300"},
		{80 * time.Second, 99, 100, "[MemoryPressure] due 100 300"},
		{90 * time.Second, 149, 100, "[MemoryPressure] due 100 300"}, // not enough was reclaimed
		{100 * time.Second, 150, 9, "[DiskPressure MemoryPressure] due 300 10%"},
		{110 * time.Second, 300, 10, "[DiskPressure MemoryPressure] due "},
		{399 * time.Second, 300, 10, "[DiskPressure MemoryPressure] due "},
		{400 * time.Second, 300, 10, "[] due "}, // five minutes after the last that was low
		{410 * time.Second, 250, 10, "[MemoryPressure] due "},
		{420 * time.Second, 310, 10, "[MemoryPressure] due "},
		{480 * time.Second, 250, 10, "[MemoryPressure] due "}, // its grace period begins again
	} {
		var d Decision
		s, d = p.Next(s, Observations{MemoryAvailable: {c.memory, 1000}, NodeFsAvailable: {c.disk, 100}},
			time.Unix(1000, 0).Add(c.at))
		var due []string
		for _, x := range d.Due {
			if text := fmt.Sprint(x.Value.Amount); x.Value.Percent > 0 {
				due = append(due, fmt.Sprint(x.Value.Percent, "%"))
			} else {
				due = append(due, text)
			}
		}
		if got := fmt.Sprint(d.Conditions, " due ", strings.Join(due, " ")); got != c.want {
			t.Errorf("after %s: %s, want %s", c.at, got, c.want)
		}
	}
	if _, d := p.Next(State{}, Observations{}, time.Unix(0, 0)); len(d.Due) > 0 || len(d.Conditions) > 0 {
		t.Error("decided of what was not seen:", d)
	}
	if p.Enough(Observations{MemoryAvailable: {149, 1000}}) ||
		!p.Enough(Observations{MemoryAvailable: {300, 1000}, NodeFsAvailable: {10, 100}}) {
		t.Error("enough")
	}
}

func TestGrace(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(20))}}
	soft := Threshold{Grace: time.Minute}
	for most, want := range map[time.Duration]time.Duration{0: 0, 5 * time.Second: 5 * time.Second,
		time.Minute: 20 * time.Second, -time.Second: 20 * time.Second} {
		if got := (Policy{MaxPodGrace: most}).Grace(soft, pod); got != want {
			t.Errorf("%s: %s", most, got)
		}
	}
	if got := (Policy{MaxPodGrace: time.Minute}).Grace(Threshold{}, pod); got != time.Second {
		t.Errorf("hard: %s", got)
	}
}

func candidate(name string, priority int32, request string, use Use) Candidate {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Priority: &priority, Containers: []corev1.Container{{Name: "c"}}}}
	pod.Name = name
	if request != "" {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"memory": resource.MustParse(request),
			"ephemeral-storage": resource.MustParse(request)}
	}
	return Candidate{Pod: pod, Use: use, Containers: map[string]Use{"c": use}}
}

// TestRank:
// https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/#pod-selection-for-kubelet-eviction.
func TestRank(t *testing.T) {
	t.Parallel()
	use := func(n int64) Use {
		return Use{"memory": n * mi, "ephemeral-storage": n * mi, Inodes: n, Processes: n}
	}
	list := []Candidate{candidate("within", 0, "100Mi", use(99)), candidate("low", -5, "100Mi", use(1)),
		candidate("above", 0, "10Mi", use(30)),
		candidate("most-above", 0, "10Mi", use(40)), candidate("most", 0, "60Mi", use(70)),
		candidate("important", 10, "", use(200)), candidate("best-effort", 0, "", use(35))}
	for signal, want := range map[Signal]string{
		MemoryAvailable:  "best-effort most-above above most important low within",
		NodeFsAvailable:  "best-effort most-above above most important low within",
		NodeFsInodesFree: "low within most most-above best-effort above important",
		PIDAvailable:     "low within most most-above best-effort above important",
	} {
		var got []string
		for _, c := range Rank(list, Threshold{Signal: signal}) {
			got = append(got, c.Pod.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", signal, strings.Join(got, " "), want)
		}
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	seen := Observations{MemoryAvailable: {50 * mi, 1000 * mi}, NodeFsInodesFree: {7, 1000}}
	for _, c := range []struct {
		c    Candidate
		t    Threshold
		want string
	}{
		{candidate("p", 0, "", Use{"memory": 5 * mi}), Threshold{Signal: MemoryAvailable, Value: Value{Percent: 10}},
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container c was using 5Mi, request is 0, has larger consumption of memory. "},
		{candidate("p", 0, "10Mi", Use{"memory": 5 * mi}),
			Threshold{Signal: MemoryAvailable, Value: Value{Amount: 100 * mi}},
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "},
		{candidate("p", 0, "", Use{Inodes: 50}), Threshold{Signal: NodeFsInodesFree, Value: Value{Percent: 5}},
			"The node was low on resource: inodes. Threshold quantity: 50, available: 7. Container c was using 50, request is 0, has larger consumption of inodes. "},
	} {
		if got := Message(c.c, c.t, seen); got != c.want {
			t.Errorf("%q\nwant %q", got, c.want)
		}
	}
}
