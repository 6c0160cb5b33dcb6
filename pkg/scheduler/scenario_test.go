package scheduler_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler"
	"bonsai/pkg/scheduler/decide"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/preemption"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/volumes"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the answers in testdata")

// TestScenarios plays testdata/*.txt. A line is one of
//
//	node NAME WORD...      adds a node
//	pod NAME on=NODE ...   adds a running pod
//	schedule NAME WORD...  decides; the next line, "-> ...", is the answer: the best nodes, or why there is none
//
// with the words of build; what does not start with one of these is a comment.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			in, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out := play(t, string(in))
			if out == string(in) {
				return
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s differs (run with -rewrite and read the diff); got:\n%s", file, out)
		})
	}
}

type scene struct {
	t         *testing.T
	nodes     []*model.NodeInfo
	profile   *profile.Profile
	nominator *model.Nominator
	mu        sync.Mutex
	evicted   []string
}

func play(t *testing.T, in string) string {
	s := &scene{t: t, nominator: model.NewNominator()}
	pre := &preemption.Plugin{API: s, Budgets: s, Statuses: s, Recorder: s, Nominator: s.nominator, Now: time.Now,
		Log: slog.New(slog.DiscardHandler), Metrics: (*scheduler.Metrics)(nil), Start: func(int) int {
			return 0
		}}
	var err error
	s.profile, err = profile.New("s",
		plugins.Default(plugins.Config{Workloads: s, Namespaces: s, Preemption: pre, Volumes: volumes.New(nil)}))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	lines := bufio.NewScanner(strings.NewReader(in))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "-> ") {
			continue
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch words[0] {
		case "node":
			s.nodes = append(s.nodes, model.NewNodeInfo(s.node(words[1], words[2:])))
		case "pod":
			p := model.NewPodInfo(s.pod(words[1], words[2:]))
			for _, n := range s.nodes {
				if n.Name() == p.Pod.Spec.NodeName {
					n.AddPod(p)
				}
			}
		case "schedule":
			fmt.Fprintln(&out, "->", s.schedule(model.NewPodInfo(s.pod(words[1], words[2:]))))
		}
	}
	return out.String()
}

// Ungate and Retry do nothing: a scene has no queue.
func (*scene) Ungate(types.UID) {}
func (*scene) Retry(types.UID)  {}

// schedule decides both ways, which must agree; a pod that fits is put onto the first of the best nodes by name.
func (s *scene) schedule(pod *model.PodInfo) string {
	snapshot := model.NewSnapshot()
	for i, n := range s.nodes {
		c := n.Clone()
		c.Slot, c.Generation = i, int64(i+1)
		snapshot.Set(i, c)
	}
	snapshot.Generation = 1
	first := func(int) int { return 0 }
	state := framework.NewCycleState()
	r, err := (&decide.Plain{Nominator: s.nominator, Random: first}).Decide(s.t.Context(), s.profile, state, pod,
		snapshot)
	fast, fastErr := decide.NewIncremental(s.nominator, first).Decide(s.t.Context(), s.profile,
		framework.NewCycleState(), pod, snapshot)
	if fmt.Sprint(err) != fmt.Sprint(fastErr) || fast.Score != r.Score {
		s.t.Errorf("pod %s: plain %v %v, incremental %v %v", pod.Pod.Name, r, err, fast, fastErr)
	}
	var fit *framework.FitError
	if errors.As(err, &fit) {
		return s.refused(state, pod, fit.Diagnosis)
	}
	if err != nil {
		return "error: " + err.Error()
	}
	slices.Sort(r.Best)
	for _, n := range s.nodes {
		if n.Name() == r.Best[0] {
			n.AddPod(pod)
		}
	}
	return strings.Join(r.Best, " ")
}

func (s *scene) refused(state *framework.CycleState, pod *model.PodInfo, d *framework.Diagnosis) string {
	s.evicted = nil
	node, st := s.profile.RunPostFilter(s.t.Context(), s, state, pod, d)
	s.profile.Wait()
	if node != "" && st.IsRejected() {
		return "still nominated to " + node + ", " + st.Message()
	}
	if node != "" {
		s.nominator.Set(pod, node)
		slices.Sort(s.evicted)
		return "nominated to " + node + ", evicts " + strings.Join(s.evicted, " ")
	}
	d.PostFilter = st.Message()
	return d.Message()
}

func (s *scene) node(name string, words []string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.Allocatable = corev1.ResourceList{"pods": resource.MustParse("110")}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "zone":
			n.Labels[corev1.LabelTopologyZone] = value
		case "label":
			k, v, _ := strings.Cut(value, "=")
			n.Labels[k] = v
		case "taint":
			kv, effect, _ := strings.Cut(value, ":")
			k, v, _ := strings.Cut(kv, "=")
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: k, Value: v, Effect: corev1.TaintEffect(effect)})
		case "cordoned":
			n.Spec.Unschedulable = true
		case "image":
			n.Status.Images = append(n.Status.Images,
				corev1.ContainerImage{Names: []string{value}, SizeBytes: 900 << 20})
		default:
			n.Status.Allocatable[corev1.ResourceName(key)] = resource.MustParse(value)
		}
	}
	return n
}

func (s *scene) pod(name string, words []string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name),
		Labels: map[string]string{}}}
	p.Spec.Containers = []corev1.Container{
		{Image: "i:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}}
	p.Spec.Affinity = &corev1.Affinity{}
	c := &p.Spec.Containers[0]
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "on":
			p.Spec.NodeName = value
		case "label":
			k, v, _ := strings.Cut(value, "=")
			p.Labels[k] = v
		case "select":
			k, v, _ := strings.Cut(value, "=")
			p.Spec.NodeSelector = map[string]string{k: v}
		case "prefer":
			k, v, _ := strings.Cut(value, "=")
			p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
					Weight: 1, Preference: corev1.NodeSelectorTerm{
						MatchExpressions: []corev1.NodeSelectorRequirement{
							{Key: k, Operator: "In", Values: []string{v}}}}}}}
		case "byname":
			p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchFields: []corev1.NodeSelectorRequirement{
							{Key: "metadata.name", Operator: "In", Values: []string{value}}}}}}}
		case "tolerate":
			p.Spec.Tolerations = append(p.Spec.Tolerations,
				corev1.Toleration{Key: value, Operator: corev1.TolerationOpExists})
		case "hostport":
			var port int32
			fmt.Sscan(value, &port)
			c.Ports = []corev1.ContainerPort{{HostPort: port}}
		case "image":
			c.Image = value
		case "priority":
			var n int32
			fmt.Sscan(value, &n)
			p.Spec.Priority = &n
		case "nopreempt":
			p.Spec.PreemptionPolicy = new(corev1.PreemptNever)
		case "near", "apart":
			podAffinity(p, key, value)
		case "spread", "spreadsoft":
			when := corev1.DoNotSchedule
			if key == "spreadsoft" {
				when = corev1.ScheduleAnyway
			}
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints,
				corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: topologyKey(value),
					WhenUnsatisfiable: when, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}})
		default:
			c.Resources.Requests[corev1.ResourceName(key)] = resource.MustParse(value)
		}
	}
	return p
}

func topologyKey(word string) string {
	if word == "zone" {
		return corev1.LabelTopologyZone
	}
	return corev1.LabelHostname
}

// podAffinity adds a required term: near=APP/zone or apart=APP/host.
func podAffinity(p *corev1.Pod, kind, value string) {
	app, domain, _ := strings.Cut(value, "/")
	terms := []corev1.PodAffinityTerm{
		{TopologyKey: topologyKey(domain),
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
	if kind == "near" {
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
		return
	}
	p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
}

// SelectorFor spreads pods of the label svc, as a Service of that selector would.
func (s *scene) SelectorFor(pod *corev1.Pod) labels.Selector {
	if v := pod.Labels["svc"]; v != "" {
		return labels.SelectorFromSet(labels.Set{"svc": v})
	}
	return nil
}

func (s *scene) NamespaceLabels(string) labels.Set { return nil }
func (s *scene) Epoch() int64                      { return 0 }

func (s *scene) Budgets() []*policyv1.PodDisruptionBudget { return nil }

func (s *scene) Preempt(_ context.Context, pod *corev1.Pod, c *corev1.PodCondition) error {
	if c.Type != corev1.DisruptionTarget || c.Reason != corev1.PodReasonPreemptionByScheduler {
		s.t.Errorf("victim %s gets condition %+v", pod.Name, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.evicted = append(s.evicted, pod.Name)
	pod.DeletionTimestamp = new(metav1.Now()) // it takes its time to end
	pod.Status.Conditions = append(pod.Status.Conditions, *c)
	return nil
}

func (s *scene) Put(context.Context, *corev1.Pod, *corev1.PodCondition, *string) {}

func (s *scene) Event(*corev1.Pod, string, string, string, string, string) {}
