package decide

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/cache"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/plugins/noderesources"
	"bonsai/pkg/scheduler/profile"
)

// history makes random clusters: a cache with nodes and pods that come, change and go.
type history struct {
	r     *rand.Rand
	cache *cache.Cache
	nodes []string
	pods  []*model.PodInfo
	next  int
	// services are selectors by app label that spread pods by default.
	services map[string]bool
	epoch    int64
	nsLabels map[string]labels.Set
	storage  storage
	gear     gear
	snapshot *model.Snapshot
}

func newHistory(seed uint64) *history {
	h := &history{r: rand.New(rand.NewPCG(seed, 1)), cache: cache.New(), services: map[string]bool{},
		snapshot: model.NewSnapshot(),
		nsLabels: map[string]labels.Set{"a": {"team": "x"}, "b": {"team": "y"}}}
	h.addStorage()
	h.addGear()
	return h
}

func (h *history) SelectorFor(pod *corev1.Pod) labels.Selector {
	if app := pod.Labels["app"]; h.services[app] {
		return labels.SelectorFromSet(labels.Set{"app": app})
	}
	return nil
}

func (h *history) NamespaceLabels(name string) labels.Set { return h.nsLabels[name] }
func (h *history) Epoch() int64                           { return h.epoch }

func (h *history) one(list ...string) string { return list[h.r.IntN(len(list))] }
func (h *history) chance(percent int) bool   { return h.r.IntN(100) < percent }

func (h *history) node(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{"kubernetes.io/hostname": name}}}
	if h.chance(85) {
		n.Labels["topology.kubernetes.io/zone"] = h.one("z1", "z2", "z3")
	}
	if h.chance(85) {
		n.Labels["disk"] = h.one("ssd", "hdd")
	}
	n.Spec.Unschedulable = h.chance(5)
	if h.chance(20) {
		n.Spec.Taints = append(n.Spec.Taints,
			corev1.Taint{Key: "k", Value: h.one("v", "w"), Effect: corev1.TaintEffectNoSchedule})
	}
	if h.chance(20) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "p", Effect: corev1.TaintEffectPreferNoSchedule})
	}
	n.Status.Allocatable = corev1.ResourceList{
		"cpu": resource.MustParse(h.one("2", "4", "8")), "memory": resource.MustParse(h.one("4Gi", "8Gi")),
		"pods": resource.MustParse(h.one("5", "20")),
	}
	if h.chance(30) {
		n.Status.Allocatable["example.com/gpu"] = resource.MustParse("2")
	}
	if h.chance(60) {
		n.Status.DeclaredFeatures = []string{"RestartAllContainersOnContainerExits"}
	}
	for _, image := range []string{"big:1", "huge:1"} {
		if h.chance(30) {
			n.Status.Images = append(n.Status.Images,
				corev1.ContainerImage{Names: []string{image}, SizeBytes: 400 << 20})
		}
	}
	return n
}

func (h *history) pod() *corev1.Pod {
	h.next++
	app := h.one("web", "db", "job")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", h.next), Namespace: h.one("a", "b"),
		UID: types.UID(fmt.Sprint(h.next)), Labels: map[string]string{"app": app}}}
	if h.chance(50) {
		p.Labels["statefulset.kubernetes.io/pod-name"] = p.Name
	}
	if h.chance(30) {
		p.Labels["tier"] = h.one("1", "2")
	}
	c := corev1.Container{Image: h.one("small:1", "big:1", "huge:1", "big")}
	if h.chance(80) {
		c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(h.one("100m", "500m", "3")),
			"memory": resource.MustParse(h.one("64Mi", "1Gi"))}
	}
	if h.chance(8) {
		c.Resources.Requests = corev1.ResourceList{
			corev1.ResourceName(h.one("example.com/gpu", "example.com/gpu", "deviceclass.resource.kubernetes.io/gpu",
				"example.com/net")): resource.MustParse(h.one("1", "2"))}
	}
	if h.chance(5) {
		c.RestartPolicyRules = []corev1.ContainerRestartRule{
			{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
	}
	if h.chance(8) {
		c.Ports = []corev1.ContainerPort{{HostPort: int32(8000 + h.r.IntN(2)), HostIP: h.one("", "10.0.0.1")}}
	}
	p.Spec.Containers = []corev1.Container{c}
	p.Spec.Priority = new(int32(h.r.IntN(3)))
	if h.chance(30) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: h.one("k", "p"), Operator: corev1.TolerationOpExists}}
	}
	if h.chance(20) {
		p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	}
	h.affinity(p, app)
	for h.chance(25) {
		p.Spec.Volumes = append(p.Spec.Volumes,
			corev1.Volume{VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: h.claim(p.Namespace)}}})
	}
	if h.chance(3) {
		p.Spec.Volumes = append(p.Spec.Volumes,
			corev1.Volume{VolumeSource: corev1.VolumeSource{
				GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: h.one("x", "y")}}})
	}
	for h.chance(15) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims,
			corev1.PodResourceClaim{Name: fmt.Sprint(len(p.Spec.ResourceClaims)),
				ResourceClaimName: new(h.gear.claim(p.Namespace))})
	}
	if h.chance(25) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{h.constraint(app)}
		if h.chance(40) {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, h.constraint(app))
		}
	}
	return p
}

func (h *history) constraint(app string) corev1.TopologySpreadConstraint {
	c := corev1.TopologySpreadConstraint{
		MaxSkew:           int32(1 + h.r.IntN(2)),
		TopologyKey:       h.one("kubernetes.io/hostname", "topology.kubernetes.io/zone", "disk"),
		WhenUnsatisfiable: corev1.UnsatisfiableConstraintAction(h.one("DoNotSchedule", "ScheduleAnyway")),
		LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}
	if h.chance(20) && c.WhenUnsatisfiable == corev1.DoNotSchedule {
		c.MinDomains = new(int32(4))
	}
	if h.chance(20) {
		c.MatchLabelKeys = []string{"tier"}
	}
	if h.chance(30) {
		c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
	}
	if h.chance(30) {
		c.NodeAffinityPolicy = new(corev1.NodeInclusionPolicyIgnore)
	}
	return c
}

func (h *history) term() corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: h.one("kubernetes.io/hostname", "topology.kubernetes.io/zone", "disk"),
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": h.one("web", "db", "job")}}}
	if h.chance(10) {
		t.LabelSelector = &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "tier", Operator: metav1.LabelSelectorOperator(h.one("Exists", "DoesNotExist"))}}}
	}
	if h.chance(10) {
		t.Namespaces = []string{h.one("a", "b")}
	}
	if h.chance(30) {
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": h.one("x", "y")}}
	}
	return t
}

func (h *history) affinity(p *corev1.Pod, app string) {
	a := &corev1.Affinity{}
	if h.chance(15) {
		a.PodAffinity = &corev1.PodAffinity{}
		if h.chance(50) {
			a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{h.term()}
		}
		a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{
			{Weight: int32(1 + h.r.IntN(100)), PodAffinityTerm: h.term()}}
	}
	if h.chance(15) {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		if h.chance(60) {
			a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{
				{TopologyKey: "kubernetes.io/hostname",
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
		}
		a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{
			{Weight: 10, PodAffinityTerm: h.term()}}
	}
	if h.chance(15) {
		a.NodeAffinity = &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 5,
				Preference: corev1.NodeSelectorTerm{
					MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: "disk", Operator: "In", Values: []string{"hdd"}}}}}}}
	}
	if h.chance(10) && len(h.nodes) > 0 {
		named := corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: "In", Values: []string{h.one(h.nodes...)}}}}
		if h.chance(20) {
			named.MatchFields[0].Values[0] = "gone"
		}
		terms := []corev1.NodeSelectorTerm{named}
		for h.chance(40) {
			more := *named.DeepCopy()
			more.MatchFields[0].Values[0] = h.one(h.nodes...)
			terms = append(terms, more)
		}
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
	}
	if h.chance(2) && len(h.nodes) > 0 {
		p.Spec.NodeName = h.one(h.nodes...)
	}
	p.Spec.Affinity = a
}

// step changes something.
func (h *history) step() {
	if len(h.nodes) > 0 && h.chance(30) {
		h.stepStorage()
	}
	if len(h.nodes) > 0 && h.chance(40) {
		h.gear.step()
	}
	switch k := h.r.IntN(100); {
	case k < 15 || len(h.nodes) < 3:
		h.next++
		name := fmt.Sprint("n", h.next)
		h.nodes = append(h.nodes, name)
		h.cache.SetNode(h.node(name))
	case k < 25:
		h.cache.SetNode(h.node(h.one(h.nodes...)))
	case k < 30:
		i := h.r.IntN(len(h.nodes))
		h.cache.RemoveNode(h.nodes[i])
		h.nodes = slices.Delete(h.nodes, i, i+1)
	case k < 60 && len(h.pods) > 0:
		i := h.r.IntN(len(h.pods))
		h.cache.Remove(h.pods[i].Pod.UID)
		h.pods = slices.Delete(h.pods, i, i+1)
	case k < 70 && len(h.pods) > 0:
		i := h.r.IntN(len(h.pods))
		p := h.pods[i].Pod.DeepCopy()
		if h.chance(50) {
			p.Labels["app"] = h.one("web", "db", "job")
		} else {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		h.pods[i] = model.NewPodInfo(p)
		h.cache.Add(h.pods[i])
	case k < 72:
		h.services[h.one("web", "db")] = h.chance(50)
	case k < 74:
		h.nsLabels[h.one("a", "b")] = labels.Set{"team": h.one("x", "y")}
		h.epoch++
	}
}

// profile has the default plug-ins, of which change may replace some.
func (h *history) profile(t *testing.T, change func([]profile.Enabled) []profile.Enabled) *profile.Profile {
	t.Helper()
	list := plugins.Default(
		plugins.Config{Workloads: h, Namespaces: h, Volumes: h.storage.known, Node: h.object, Devices: h.gear.known,
			Fit: noderesources.Fit{ByDevices: h.gear.known.GivenByClass}, Log: slog.New(slog.DiscardHandler)})
	if change != nil {
		list = change(list)
	}
	p, err := profile.New("default-scheduler", list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tally is how often what happened.
type tally struct {
	chosen, refused int
	slow, inTier    int // decided plainly; of tier 1, or such that only the plain way has the answer
	plainly         int // of which only the plain way has the answer
	claims          int // chosen with claims
	devices         int // chosen with claims on devices
}

// run makes decisions in both ways, with changes between them, and returns the first difference.
func (h *history) run(ctx context.Context, p *profile.Profile, decisions int) (tally, error) {
	var n tally
	nominator := model.NewNominator()
	plain := &Plain{Nominator: nominator, Random: h.r.IntN}
	fast := NewIncremental(nominator, h.r.IntN)
	snapshot := h.snapshot
	for range decisions {
		h.step()
		pod := model.NewPodInfo(h.pod())
		if h.chance(10) {
			nominator.Set(model.NewPodInfo(h.pod()), h.one(h.nodes...))
		}
		if h.chance(5) {
			nominator.Set(pod, h.one(h.nodes...))
		}
		if h.chance(3) {
			nominator = model.NewNominator()
			plain.Nominator, fast.plain.Nominator = nominator, nominator
		}
		if h.plainly(pod) {
			n.plainly++
			n.inTier++
		} else if inTier(pod) {
			n.inTier++
		}
		h.cache.Refresh(snapshot)
		state := framework.NewCycleState()
		want, wantErr := plain.Decide(ctx, p, state, pod, snapshot)
		if err := compareRefusals(plain, p, state, pod, wantErr); err != nil {
			return n, err
		}
		var got Result
		var err error
		if v := fast.look(p, nil, pod, snapshot); v != nil {
			got, err = fast.answer(v, framework.NewCycleState())
		} else {
			n.slow++
			got, err = fast.Decide(ctx, p, framework.NewCycleState(), pod, snapshot)
		}
		if wantErr != nil || err != nil {
			if err := compareErrors(wantErr, err); err != nil {
				return n, err
			}
			n.refused++
			continue
		}
		if got.Best == nil {
			got.Best = fast.best(snapshot, got.Score)
		}
		slices.Sort(got.Best)
		slices.Sort(want.Best)
		if !slices.Equal(got.Best, want.Best) || got.Score != want.Score || got.Feasible != want.Feasible {
			return n, fmt.Errorf(
				"results that were kept are wrong: does a plug-in read more than it declares?\npod %v\n got %v score %d of %d\nwant %v score %d of %d",
				pod.Pod.Spec, got.Best, got.Score, got.Feasible, want.Best, want.Score, want.Feasible)
		}
		if !slices.Contains(want.Best, got.Node) {
			return n, fmt.Errorf("chose %s, not one of the best %v", got.Node, want.Best)
		}
		n.chosen++
		if len(pod.Claims) > 0 {
			n.claims++
		}
		if len(pod.Pod.Spec.ResourceClaims) > 0 {
			n.devices++
		}
		if err := h.take(p, pod, got.Node); err != nil {
			return n, err
		}
		bound := pod.Pod.DeepCopy()
		bound.Spec.NodeName = got.Node
		info := model.NewPodInfo(bound)
		if err := h.cache.Assume(info, got.Node); err != nil {
			return n, err
		}
		if h.chance(50) {
			h.cache.Add(info)
		}
		h.pods = append(h.pods, info)
	}
	return n, nil
}

// TestIncrementalGivesThePlainAnswer runs random histories and compares each decision with the oracle: the same error,
// or the same best nodes with the same score. What the histories must contain to mean much is asked of all of them
// together: which of equal nodes a pod gets is not the seed's, so a single history may run out of devices early.
func TestIncrementalGivesThePlainAnswer(t *testing.T) {
	t.Parallel()
	const histories = 40
	var mu sync.Mutex
	var sum tally
	t.Run("histories", func(t *testing.T) {
		for seed := range uint64(histories) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				h := newHistory(seed)
				n, err := h.run(t.Context(), h.profile(t, nil), 400)
				if err != nil {
					t.Fatal(err)
				}
				if n.slow != n.plainly {
					t.Errorf("%d pods were decided the slow way, which only %d need: a plug-in declares neither Reads nor Track, or Concerns names too many pods",
						n.slow, n.plainly)
				}
				mu.Lock()
				defer mu.Unlock()
				sum.chosen += n.chosen
				sum.refused += n.refused
				sum.claims += n.claims
				sum.devices += n.devices
			})
		}
	})
	if sum.chosen < 20*histories || sum.refused < 5*histories || sum.claims < 5*histories || sum.devices < 5*histories {
		t.Errorf("the histories are too one-sided to mean much: %+v", sum)
	}
}

// compareRefusals holds all refusals of a node against the one that the decision gave, which must be the first. Nodes
// that PreFilter left out have none.
func compareRefusals(d *Plain, p *profile.Profile, state *framework.CycleState, pod *model.PodInfo,
	decided error) error {
	var fit *framework.FitError
	if !errors.As(decided, &fit) || fit.Diagnosis.PreFilter != "" {
		return nil
	}
	for n := range fit.Diagnosis.Snapshot.All {
		st := fit.Diagnosis.Of(n)
		if strings.HasPrefix(st.Message(), "node(s) didn't satisfy plugin(s)") {
			continue
		}
		if all := d.Refusals(p, state, pod, n); len(all) == 0 || all[0].Plugin != st.Plugin ||
			all[0].Message() != st.Message() {
			return fmt.Errorf("node %s: refusals %v, decided by %+v", n.Name(), all, st)
		}
	}
	return nil
}

func compareErrors(want, got error) error {
	differ := fmt.Errorf("incremental: %v\n      plain: %v", got, want)
	var a, b *framework.FitError
	if !errors.As(want, &a) || !errors.As(got, &b) || a.Error() != b.Error() {
		return differ
	}
	others := maps.Collect(b.Diagnosis.Statuses)
	for node, s := range a.Diagnosis.Statuses {
		o := others[node]
		if o == nil || o.Plugin != s.Plugin || o.Code != s.Code {
			return fmt.Errorf("node %s: incremental %+v, plain %+v", node, o, s)
		}
	}
	return nil
}
