package invariants

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/controller/controllertest"
)

// TestLiars: what controllers that break the rules do on a real API server is recorded and found, by the same watchers
// and the same check as in histories.
func TestLiars(t *testing.T) {
	p := newPlace(t)
	ctx, over := context.WithCancel(t.Context())
	var watchers sync.WaitGroup
	defer func() { over(); watchers.Wait() }()
	p.follow(ctx, t, &watchers)
	u := &users{place: p, ctx: ctx, t: t}
	u.makeNode(0)
	u.makeVolume("v", corev1.ReadWriteOnce)
	u.makeDeployment("web")
	l := &liar{users: u}
	d := get(l, p.deployments, "web")
	l.set(d, "old", 5)
	l.set(d, "new", 4) // five and a surge of two are seven
	old := get(l, p.replicaSets, "old")
	for i := range 6 {
		l.pod(fmt.Sprint("old-", i), podSpec(900, ""),
			metav1.NewControllerRef(old, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")))
	}
	for i := range 5 { // the node has room for four
		l.bind(fmt.Sprint("old-", i))
		l.serve(fmt.Sprint("old-", i))
	}
	l.remove("old-0")
	l.remove("old-1") // five with one unavailable are four
	spec := podSpec(1, "")
	spec.RestartPolicy = corev1.RestartPolicyNever
	j, err := p.jobs.Create(ctx,
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job"},
			Spec: batchv1.JobSpec{Completions: new(int32(6)), Parallelism: new(int32(3)),
				CompletionMode: new(batchv1.IndexedCompletion), Template: template("job", spec)}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		l.pod(fmt.Sprint("job-", i), spec, metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job")))
	}
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner"}}
	if owner, err = p.configMaps.Create(ctx, owner); err != nil {
		t.Fatal(err)
	}
	if _, err := p.configMaps.Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owned",
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}}}); err != nil {
		t.Fatal(err)
	}
	if err := p.configMaps.Delete(ctx, namespace, "owned", ""); err != nil {
		t.Fatal(err)
	}
	l.attach("node-0")
	l.attach("node-1")
	p.complete(t)
	want := []rule{surge, replicas, unavailable, overcommit, stillRunning, indexTwice, collected, attachTwice}
	controllertest.Eventually(t, "all to be found", func() string {
		p.mu.Lock()
		h := p.history
		h.events = slices.Clone(h.events)
		p.mu.Unlock()
		found := check(h)
		for _, r := range want {
			if !slices.ContainsFunc(found, func(v violation) bool { return v.rule == r }) {
				return fmt.Sprintf("%q is not among %v", r, found)
			}
		}
		return ""
	})
}

// liar does what no controller does.
type liar struct{ *users }

func get[T apiclient.Object](l *liar, r *apiclient.Resource[T], name string) T {
	o, err := r.Get(l.ctx, namespace, name)
	if err != nil {
		l.t.Fatal(err)
	}
	return o
}

func (l *liar) set(d *appsv1.Deployment, name string, n int32) {
	_, err := l.replicaSets.Create(l.ctx,
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}},
			Spec: appsv1.ReplicaSetSpec{Replicas: &n, Selector: d.Spec.Selector, Template: d.Spec.Template}})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *liar) pod(name string, spec corev1.PodSpec, controller *metav1.OwnerReference) {
	_, err := l.pods.Create(l.ctx,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{*controller},
			Annotations:     map[string]string{batchv1.JobCompletionIndexAnnotation: "0"}}, Spec: spec})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *liar) bind(pod string) {
	err := l.pods.CreateSub(l.ctx, namespace, pod, "binding",
		&corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod},
			Target: corev1.ObjectReference{Kind: "Node", Name: nodeName(0)}}, &metav1.Status{})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *liar) serve(pod string) {
	patch := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	if _, err := l.pods.Patch(l.ctx, namespace, pod, types.StrategicMergePatchType, patch, "status"); err != nil {
		l.t.Fatal(err)
	}
}

// remove takes a pod away without waiting for its node.
func (l *liar) remove(pod string) {
	if err := l.pods.DeleteWith(l.ctx, namespace, pod,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *liar) attach(node string) {
	a := anAttachment(node)
	a.UID, a.Spec.Attacher = "", driver
	if _, err := l.attachments.Create(l.ctx, a); err != nil {
		l.t.Fatal(err)
	}
}
