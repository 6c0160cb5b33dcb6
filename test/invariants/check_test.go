package invariants

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
)

// tale is a small history, told step by step.
type tale struct{ history }

func newTale() *tale {
	return &tale{history{deleted: map[types.UID]bool{}, evicted: map[types.UID]bool{}, ended: map[types.UID]bool{}}}
}

func (h *tale) tell(typ watch.EventType, o metav1.Object) {
	h.events = append(h.events, event{typ, uint64(len(h.events) + 1), o})
}

func (h *tale) has(all ...metav1.Object) {
	for _, o := range all {
		h.tell(watch.Added, o)
	}
}

// ends has each object first be asked to end and then go.
func (h *tale) ends(all ...metav1.Object) {
	for _, o := range all {
		switch o := o.(type) {
		case *corev1.Pod:
			o = o.DeepCopy()
			o.DeletionTimestamp = new(metav1.Now())
			h.tell(watch.Modified, o)
			h.ended[o.UID] = true
			h.tell(watch.Deleted, o)
		default:
			h.tell(watch.Deleted, o)
		}
	}
}

func meta(name string, owners ...metav1.Object) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}
	for i, o := range owners {
		m.OwnerReferences = append(m.OwnerReferences,
			metav1.OwnerReference{Kind: "ConfigMap", Name: o.GetName(), UID: o.GetUID(), Controller: new(i == 0)})
	}
	return m
}

func aDeployment(n int32, maxSurge, maxUnavailable int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: meta("d"),
		Spec: appsv1.DeploymentSpec{Replicas: &n, Strategy: appsv1.DeploymentStrategy{
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(maxSurge)),
				MaxUnavailable: new(intstr.FromInt32(maxUnavailable))}}}}
}

func aSet(name string, n int32, d *appsv1.Deployment) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: meta(name, d), Spec: appsv1.ReplicaSetSpec{Replicas: &n},
		Status: appsv1.ReplicaSetStatus{Replicas: n}}
}

// aPod serves on node n.
func aPod(name string, owners ...metav1.Object) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta(name, owners...),
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	p.Labels = map[string]string{"app": "x"}
	p.Spec.NodeName = "n"
	return p
}

func aNode(pods string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n"},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods),
				corev1.ResourceCPU: resource.MustParse("1")}}}
}

func asks(p *corev1.Pod, cpu string) *corev1.Pod {
	p.Spec.Containers = []corev1.Container{
		{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	return p
}

func uses(p *corev1.Pod, claim string) *corev1.Pod {
	p.Spec.Volumes = []corev1.Volume{
		{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	return p
}

func aClaim(name, volume string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta(name),
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume,
			AccessModes: []corev1.PersistentVolumeAccessMode{mode}}}
}

func aVolume(mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "v"}}
	v.Spec.AccessModes, v.Spec.CSI = []corev1.PersistentVolumeAccessMode{mode},
		&corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "v"}
	return v
}

func anAttachment(node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "v-" + node, UID: types.UID("v-" + node)},
		Spec: storagev1.VolumeAttachmentSpec{NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("v")}}}
}

func aJob(policy batchv1.PodReplacementPolicy) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: meta("j"),
		Spec: batchv1.JobSpec{Parallelism: new(int32(2)), Completions: new(int32(2)), PodReplacementPolicy: &policy}}
}

func ofIndex(name, index string, j *batchv1.Job, phase corev1.PodPhase) *corev1.Pod {
	p := aPod(name, j)
	p.Annotations, p.Status.Phase = map[string]string{batchv1.JobCompletionIndexAnnotation: index}, phase
	return p
}

func terminating[T metav1.Object](o T, finalizers ...string) T {
	o.SetDeletionTimestamp(new(metav1.Now()))
	o.SetFinalizers(finalizers)
	return o
}

// TestCheck breaks each rule in a small history and sees it found; beside it stands what is allowed.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		tell func(*tale)
		want rule
	}{
		{"a surge", func(h *tale) {
			d := aDeployment(3, 1, 0)
			h.has(d, aSet("a", 3, d), aSet("b", 2, d))
		}, surge},
		{"a surge that is allowed", func(h *tale) {
			d := aDeployment(3, 2, 0)
			h.has(d, aSet("a", 3, d), aSet("b", 2, d))
		}, ""},
		{"a surge by a size that is not observed to be another", func(h *tale) {
			d, smaller := aDeployment(5, 0, 1), aDeployment(3, 0, 1)
			smaller.Generation = 1
			h.has(d, smaller, aSet("a", 5, d))
		}, ""},
		{"a surge by a size that is over", func(h *tale) {
			d, smaller := aDeployment(5, 0, 1), aDeployment(3, 0, 1)
			smaller.Generation, smaller.Status.ObservedGeneration = 1, 1
			h.has(d, smaller, aSet("a", 5, d))
		}, surge},
		{"a pod too many", func(h *tale) {
			d := aDeployment(1, 0, 1)
			s := aSet("a", 1, d)
			h.has(aNode("9"), d, s, aPod("1", s), aPod("2", s))
		}, replicas},
		{"a pod too few", func(h *tale) {
			d := aDeployment(2, 1, 0)
			s := aSet("a", 2, d)
			one, two := aPod("1", s), aPod("2", s)
			h.has(aNode("9"), d, s, one, two)
			h.ends(one)
		}, unavailable},
		{"a pod less, which is allowed", func(h *tale) {
			d := aDeployment(2, 0, 1)
			s := aSet("a", 2, d)
			one, two := aPod("1", s), aPod("2", s)
			h.has(aNode("9"), d, s, one, two)
			h.ends(one)
		}, ""},
		{"a pod less by a user", func(h *tale) {
			d := aDeployment(2, 1, 0)
			s := aSet("a", 2, d)
			one, two := aPod("1", s), aPod("2", s)
			h.has(aNode("9"), d, s, one, two)
			h.deleted["1"] = true
			h.ends(one)
		}, ""},
		{"an eviction too many", func(h *tale) {
			one, two := aPod("1"), aPod("2")
			h.has(aNode("9"), &policyv1.PodDisruptionBudget{ObjectMeta: meta("b"),
				Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(2)),
					Selector: &metav1.LabelSelector{MatchLabels: one.Labels}}}, one, two)
			h.evicted["1"] = true
			h.ends(one)
		}, budget},
		{"an index twice", func(h *tale) {
			j := aJob(batchv1.TerminatingOrFailed)
			h.has(aNode("9"), j, ofIndex("1", "0", j, corev1.PodRunning), ofIndex("2", "0", j, corev1.PodPending))
		}, indexTwice},
		{"an index again that has succeeded", func(h *tale) {
			j := aJob(batchv1.TerminatingOrFailed)
			h.has(aNode("9"), j, ofIndex("1", "0", j, corev1.PodSucceeded), ofIndex("2", "0", j, corev1.PodPending))
		}, indexTwice},
		{"an index again that has failed", func(h *tale) {
			j := aJob(batchv1.TerminatingOrFailed)
			h.has(aNode("9"), j, ofIndex("1", "0", j, corev1.PodFailed), ofIndex("2", "0", j, corev1.PodPending))
		}, ""},
		{"an index again beside one that ends", func(h *tale) {
			j := aJob(batchv1.Failed)
			h.deleted["1"] = true
			h.has(aNode("9"), j, terminating(ofIndex("1", "0", j, corev1.PodRunning)),
				ofIndex("2", "0", j, corev1.PodPending))
		}, indexTwice},
		{"too much at once", func(h *tale) {
			j := aJob(batchv1.TerminatingOrFailed)
			h.has(aNode("9"), j, ofIndex("1", "0", j, corev1.PodRunning), ofIndex("2", "1", j, corev1.PodRunning),
				ofIndex("3", "2", j, corev1.PodPending))
		}, parallelism},
		{"a Job that counts one twice", func(h *tale) {
			j := aJob(batchv1.TerminatingOrFailed)
			h.has(aNode("9"), j, ofIndex("1", "0", j, corev1.PodSucceeded))
			j = j.DeepCopy()
			j.Status = batchv1.JobStatus{Succeeded: 2,
				Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}
			h.tell(watch.Modified, j)
		}, miscounted},
		{"an ordinal too early", func(h *tale) {
			s := &appsv1.StatefulSet{ObjectMeta: meta("s")}
			first := aPod("s-0", s)
			first.Status.Conditions = nil
			h.has(aNode("9"), s, first, aPod("s-1", s))
		}, ordinalEarly},
		{"an ordinal in its turn", func(h *tale) {
			s := &appsv1.StatefulSet{ObjectMeta: meta("s")}
			h.has(aNode("9"), s, aPod("s-0", s), aPod("s-1", s))
		}, ""},
		{"a pod that its node still runs", func(h *tale) {
			p := aPod("1")
			h.deleted["1"] = true
			h.has(aNode("9"), p)
			h.tell(watch.Deleted, p)
		}, stillRunning},
		{"an object without an owner", func(h *tale) {
			m := &corev1.ConfigMap{ObjectMeta: meta("m")}
			h.has(m)
			h.ends(m)
		}, collected},
		{"an object of a living owner", func(h *tale) {
			o := &corev1.ConfigMap{ObjectMeta: meta("o")}
			m := &corev1.ConfigMap{ObjectMeta: meta("m", o, aPod("gone"))}
			h.has(o, m)
			h.ends(m)
		}, collected},
		{"an object whose owner is gone", func(h *tale) {
			m := &corev1.ConfigMap{ObjectMeta: meta("m", aPod("gone"))}
			h.has(m)
			h.ends(m)
		}, ""},
		{"an object of an owner that is of another kind than it says", func(h *tale) {
			o := &corev1.ConfigMap{ObjectMeta: meta("o")}
			m := &corev1.ConfigMap{ObjectMeta: meta("m", o)}
			m.OwnerReferences[0].Kind = "Secret"
			h.has(o, m)
			h.ends(m)
		}, ""},
		{"an object of an owner elsewhere", func(h *tale) {
			o := &corev1.ConfigMap{ObjectMeta: meta("o")}
			m := &corev1.ConfigMap{ObjectMeta: meta("m", o)}
			o.Namespace = "other"
			h.has(o, m)
			h.ends(m)
		}, ""},
		{"an object of an owner with the finalizer of a deletion that nobody asked for", func(h *tale) {
			o := &corev1.ConfigMap{ObjectMeta: meta("o")}
			o.Finalizers = []string{metav1.FinalizerDeleteDependents}
			m := &corev1.ConfigMap{ObjectMeta: meta("m", o)}
			h.has(o, m)
			h.ends(m)
		}, collected},
		{"an object whose owner waits for it", func(h *tale) {
			o := &corev1.ConfigMap{ObjectMeta: meta("o")}
			m := &corev1.ConfigMap{ObjectMeta: meta("m", o)}
			h.deleted["o"] = true
			h.has(o, m)
			h.tell(watch.Modified, terminating(o.DeepCopy(), metav1.FinalizerDeleteDependents))
			h.ends(m)
		}, ""},
		{"an object whose owner waits for something else", func(h *tale) {
			o := &corev1.ConfigMap{ObjectMeta: meta("o")}
			m := &corev1.ConfigMap{ObjectMeta: meta("m", o)}
			h.deleted["o"] = true
			h.has(o, m)
			h.tell(watch.Modified, terminating(o.DeepCopy(), "example.com/hold"))
			h.ends(m)
		}, collected},
		{"a node with too many pods", func(h *tale) { h.has(aNode("1"), aPod("1"), aPod("2")) }, overcommit},
		{"a node with too little CPU", func(h *tale) {
			h.has(aNode("9"), asks(aPod("1"), "600m"), asks(aPod("2"), "500m"))
		}, overcommit},
		{"a full node", func(h *tale) { h.has(aNode("2"), asks(aPod("1"), "500m"), asks(aPod("2"), "500m")) }, ""},
		{"a volume for one pod twice", func(h *tale) {
			h.has(aNode("9"), aClaim("c", "v", corev1.ReadWriteOncePod), uses(aPod("1"), "c"), uses(aPod("2"), "c"))
		}, oncePod},
		{"a volume for one node twice on it", func(h *tale) {
			h.has(aNode("9"), aClaim("c", "v", corev1.ReadWriteOnce), uses(aPod("1"), "c"), uses(aPod("2"), "c"))
		}, ""},
		{"two claims of a volume", func(h *tale) {
			h.has(aClaim("c", "v", corev1.ReadWriteOnce), aClaim("d", "v", corev1.ReadWriteOnce))
		}, boundTwice},
		{"a volume at two nodes", func(h *tale) {
			h.has(aVolume(corev1.ReadWriteOnce), anAttachment("a"), anAttachment("b"))
		}, attachTwice},
		{"a volume for many at two nodes", func(h *tale) {
			h.has(aVolume(corev1.ReadWriteMany), anAttachment("a"), anAttachment("b"))
		}, ""},
		{"a volume detached in use", func(h *tale) {
			n := aNode("9")
			n.Status.VolumesInUse, n.Status.VolumesAttached = []corev1.UniqueVolumeName{"kubernetes.io/csi/d^v"},
				[]corev1.AttachedVolume{{Name: "kubernetes.io/csi/d^v"}}
			h.has(n, aVolume(corev1.ReadWriteOnce), anAttachment("n"))
			h.ends(anAttachment("n"))
		}, detachedUsed},
		{"a volume detached that is wanted, and was not mounted", func(h *tale) {
			n := aNode("9")
			n.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/d^v"}
			h.has(n, aVolume(corev1.ReadWriteOnce), anAttachment("n"))
			h.ends(anAttachment("n"))
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newTale()
			c.tell(h)
			found := check(h.history)
			if c.want == "" && len(found) > 0 || c.want != "" && !slices.ContainsFunc(found, func(v violation) bool {
				return v.rule == c.want
			}) {
				t.Errorf("found %v, want %q", found, c.want)
			}
			for _, v := range found {
				if v.rule != c.want {
					t.Errorf("also found %s", v)
				}
			}
		})
	}
}
