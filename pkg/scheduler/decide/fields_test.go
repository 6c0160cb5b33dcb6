package decide

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins/dynamicresources"
	"bonsai/pkg/scheduler/plugins/imagelocality"
	"bonsai/pkg/scheduler/plugins/nodeaffinity"
	"bonsai/pkg/scheduler/plugins/nodedeclaredfeatures"
	"bonsai/pkg/scheduler/plugins/nodeunschedulable"
	"bonsai/pkg/scheduler/plugins/podtopologyspread"
	"bonsai/pkg/scheduler/plugins/tainttoleration"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/slim"
)

// scramble sets v to something random. Texts are "a" or "b", lists and maps have at most two entries.
func scramble(r *rand.Rand, v reflect.Value, depth int) {
	if !v.CanSet() || depth > 6 {
		return
	}
	if v.Type() == reflect.TypeFor[resource.Quantity]() {
		v.Set(reflect.ValueOf(resource.MustParse([]string{"1", "2"}[r.IntN(2)])))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"a", "b"}[r.IntN(2)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(r.Int64N(3))
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			scramble(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 2))
		for i := range v.Len() {
			scramble(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			scramble(r, key, depth+1)
			scramble(r, value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			scramble(r, v.Field(i), depth+1)
		}
	}
}

// twins makes of each object one with random values in all that the keeper drops, and one without that.
type twins struct {
	r     *rand.Rand
	keep  *slim.Keeper
	pods  map[*model.PodInfo][2]*model.PodInfo
	nodes map[*corev1.Node][2]*corev1.Node
}

// fill leaves some fields with what the history gave them: other values may mean nothing to anybody.
func (w *twins) fill(v reflect.Value) {
	if v.IsZero() || w.r.IntN(2) == 0 {
		scramble(w.r, v, 0)
	}
}

func (w *twins) pod(p *model.PodInfo) [2]*model.PodInfo {
	if pair, ok := w.pods[p]; ok {
		return pair
	}
	whole := p.Pod.DeepCopy()
	w.keep.VisitPod(whole, w.fill)
	// Lists that are kept in part.
	var ready corev1.PodCondition
	var port corev1.ContainerPort
	volume := corev1.Volume{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	for _, v := range []any{&ready.Status, &port.Name, &volume.Name} {
		scramble(w.r, reflect.ValueOf(v).Elem(), 0)
	}
	ready.Type = corev1.PodReady
	whole.Status.Conditions = append(whole.Status.Conditions, ready)
	whole.Spec.Volumes = append(whole.Spec.Volumes, volume)
	whole.Spec.Containers[0].Ports = append(whole.Spec.Containers[0].Ports, port)
	small := whole.DeepCopy()
	w.keep.Pod(small)
	pair := [2]*model.PodInfo{model.NewPodInfo(whole), model.NewPodInfo(small)}
	w.pods[p] = pair
	return pair
}

func (w *twins) node(n *corev1.Node) [2]*corev1.Node {
	if pair, ok := w.nodes[n]; ok {
		return pair
	}
	whole := n.DeepCopy()
	w.keep.VisitNode(whole, w.fill)
	small := whole.DeepCopy()
	w.keep.Node(small)
	pair := [2]*corev1.Node{whole, small}
	w.nodes[n] = pair
	return pair
}

func (w *twins) snapshot(s *model.Snapshot) (pair [2]*model.Snapshot) {
	for which := range pair {
		var nodes []*model.NodeInfo
		for n := range s.All {
			copied := model.NewNodeInfo(w.node(n.Node)[which])
			copied.VolumeLimits = n.VolumeLimits
			for _, p := range n.Pods {
				copied.AddPod(w.pod(p)[which])
			}
			nodes = append(nodes, copied)
		}
		pair[which] = model.NewSnapshot(nodes...)
	}
	return pair
}

// blank makes decisions on objects with random values in all that nobody declares, and on slim ones. It returns the
// first difference.
func (h *history) blank(ctx context.Context, p *profile.Profile, decisions int) (chosen int, err error) {
	keep, err := slim.New(slices.Collect(maps.Values(p.Fields))...)
	if err != nil {
		return 0, err
	}
	w := &twins{r: h.r, keep: keep, pods: map[*model.PodInfo][2]*model.PodInfo{},
		nodes: map[*corev1.Node][2]*corev1.Node{}}
	plain := &Plain{Nominator: model.NewNominator(), Random: func(int) int { return 0 }}
	for range decisions {
		h.step()
		h.cache.Refresh(h.snapshot)
		pod := model.NewPodInfo(h.pod())
		pods, snapshots := w.pod(pod), w.snapshot(h.snapshot)
		want, wantErr := plain.Decide(ctx, p, framework.NewCycleState(), pods[0], snapshots[0])
		got, gotErr := plain.Decide(ctx, p, framework.NewCycleState(), pods[1], snapshots[1])
		if wantErr != nil || gotErr != nil {
			if err := compareErrors(wantErr, gotErr); err != nil {
				return chosen, err
			}
			continue
		}
		if !slices.Equal(got.Best, want.Best) || got.Score != want.Score || got.Feasible != want.Feasible {
			return chosen, fmt.Errorf(
				"a plug-in reads a field that it does not declare with Fields: slim %v score %d of %d, whole %v score %d of %d", got.Best, got.Score, got.Feasible, want.Best, want.Score, want.Feasible)
		}
		chosen++
		if err := h.take(p, pod, want.Node); err != nil {
			return chosen, err
		}
		bound := pod.Pod.DeepCopy()
		bound.Spec.NodeName = want.Node
		info := model.NewPodInfo(bound)
		if err := h.cache.Assume(info, want.Node); err != nil {
			return chosen, err
		}
		h.cache.Add(info)
		h.pods = append(h.pods, info)
	}
	return chosen, nil
}

// TestDecisionsReadOnlyWhatIsDeclared: what the scheduler drops from pods and nodes, because no plug-in declares it,
// does not change a decision.
func TestDecisionsReadOnlyWhatIsDeclared(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := newHistory(seed)
			chosen, err := h.blank(t.Context(), h.profile(t, nil), 200)
			if err != nil {
				t.Fatal(err)
			}
			if chosen < 20 {
				t.Errorf("%d pods got a node: too few to mean much", chosen)
			}
		})
	}
}

// Plug-ins that do not declare the fields that they read.
type (
	blindImages        struct{ imagelocality.Plugin }
	blindFeatures      struct{ nodedeclaredfeatures.Plugin }
	blindTaints        struct{ tainttoleration.Plugin }
	blindUnschedulable struct{ nodeunschedulable.Plugin }
	blindAffinity      struct{ nodeaffinity.Plugin }
	blindSpread        struct{ *podtopologyspread.Plugin }
	blindDevices       struct{ *dynamicresources.Plugin }
)

func (blindImages) Fields() framework.Fields        { return framework.Fields{} }
func (blindFeatures) Fields() framework.Fields      { return framework.Fields{} }
func (blindTaints) Fields() framework.Fields        { return framework.Fields{} }
func (blindUnschedulable) Fields() framework.Fields { return framework.Fields{} }
func (blindAffinity) Fields() framework.Fields      { return framework.Fields{} }
func (blindSpread) Fields() framework.Fields        { return framework.Fields{} }
func (blindDevices) Fields() framework.Fields       { return framework.Fields{} }

// nosy is a plug-in that refuses a node by one field, which it may declare.
type nosy struct {
	refuses func(*corev1.Pod, *corev1.Node) bool
	fields  framework.Fields
}

func (nosy) Name() string               { return "Nosy" }
func (n nosy) Fields() framework.Fields { return n.fields }
func (n nosy) Filter(_ *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) *framework.Status {
	if n.refuses(pod.Pod, node.Node) {
		return framework.NewStatus(framework.Unschedulable, "nosy")
	}
	return nil
}

// nosies are plug-ins by the field that they read.
func nosies() map[string]nosy {
	pod := func(path string, refuses func(*corev1.Pod) bool) nosy {
		both := func(p *corev1.Pod, _ *corev1.Node) bool { return refuses(p) }
		return nosy{both, framework.Fields{Pod: []string{path}}}
	}
	node := func(path string, refuses func(*corev1.Node) bool) nosy {
		both := func(_ *corev1.Pod, n *corev1.Node) bool { return refuses(n) }
		return nosy{both, framework.Fields{Node: []string{path}}}
	}
	return map[string]nosy{
		"annotation": pod("metadata.annotations[a]", func(p *corev1.Pod) bool { return p.Annotations["a"] == "a" }),
		"user": pod("spec.securityContext.runAsUser", func(p *corev1.Pod) bool {
			s := p.Spec.SecurityContext
			return s != nil && s.RunAsUser != nil && *s.RunAsUser == 1
		}),
		"runtime class": pod("spec.runtimeClassName", func(p *corev1.Pod) bool {
			return p.Spec.RuntimeClassName != nil
		}),
		"environment": pod("spec.containers.env", func(p *corev1.Pod) bool {
			return len(p.Spec.Containers[0].Env) == 1
		}),
		"pod's address": pod("status.podIP", func(p *corev1.Pod) bool { return p.Status.PodIP == "a" }),
		"readiness": pod("status.conditions", func(p *corev1.Pod) bool {
			return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Status == "a" })
		}),
		"volumes": pod("spec.volumes", func(p *corev1.Pod) bool {
			return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
				return v.EmptyDir != nil && v.Name == "a"
			})
		}),
		"ports": pod("spec.containers.ports", func(p *corev1.Pod) bool {
			return slices.ContainsFunc(p.Spec.Containers[0].Ports, func(c corev1.ContainerPort) bool {
				return c.Name == "a"
			})
		}),
		"node's annotation": node("metadata.annotations[a]", func(n *corev1.Node) bool {
			return n.Annotations["a"] == "a"
		}),
		"node's system": node("status.nodeInfo.osImage", func(n *corev1.Node) bool {
			return n.Status.NodeInfo.OSImage == "a"
		}),
		"node's capacity": node("status.capacity", func(n *corev1.Node) bool { return len(n.Status.Capacity) > 0 }),
	}
}

// undeclaredFields returns plug-ins that do not declare their fields, by what they read all the same.
func undeclaredFields() map[string]func(h *history) []framework.Plugin {
	return map[string]func(h *history) []framework.Plugin{
		"images":        these(blindImages{}),
		"features":      these(blindFeatures{nodedeclaredfeatures.New()}),
		"unschedulable": these(blindUnschedulable{}),
		"taints": func(h *history) []framework.Plugin {
			return []framework.Plugin{blindTaints{}, blindSpread{&podtopologyspread.Plugin{Workloads: h}}}
		},
		"node affinity": func(h *history) []framework.Plugin {
			return []framework.Plugin{blindAffinity{}, blindSpread{&podtopologyspread.Plugin{Workloads: h}}}
		},
		"devices": func(h *history) []framework.Plugin {
			return []framework.Plugin{blindDevices{&dynamicresources.Plugin{Devices: h.gear.known, Node: h.object}}}
		},
	}
}

// TestEveryFieldReaderHasABlindVersion: undeclaredFields has a version of each plug-in that declares fields.
func TestEveryFieldReaderHasABlindVersion(t *testing.T) {
	t.Parallel()
	h := newHistory(0)
	versions := map[string]bool{}
	for _, plugins := range undeclaredFields() {
		for _, pl := range plugins(h) {
			versions[pl.Name()] = true
		}
	}
	for name := range h.profile(t, nil).Fields {
		if !versions[name] {
			t.Errorf("%s declares fields: add a version without Fields to undeclaredFields", name)
		}
	}
}

// TestTheOracleFindsUndeclaredFields: a plug-in that reads a field which it does not declare decides otherwise about
// slim objects; one that declares it does not.
func TestTheOracleFindsUndeclaredFields(t *testing.T) {
	t.Parallel()
	cases := undeclaredFields()
	for name, n := range nosies() {
		cases[name] = these(nosy{refuses: n.refuses})
	}
	for name, plugins := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(50) {
				h := newHistory(seed)
				if _, err := h.blank(t.Context(), h.profile(t, instead(plugins(h)...)), 200); err != nil {
					return
				}
			}
			t.Error("nobody notices")
		})
	}
	for name, n := range nosies() {
		t.Run(name+", declared", func(t *testing.T) {
			t.Parallel()
			h := newHistory(1)
			if _, err := h.blank(t.Context(), h.profile(t, instead(n)), 100); err != nil {
				t.Error(err)
			}
		})
	}
}
