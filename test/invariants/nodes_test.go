package invariants

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	nodeCount  = 6
	driver     = "invariants.example.com"
	detaching  = "external-attacher/invariants-example-com"
	perNodeCPU = "4"
	// slowest is how long a node takes at most for one step of a pod.
	slowest = 60 * time.Millisecond
)

// fleet plays the nodes and the storage driver's attacher: pods start, run, serve, end with what they were made for and
// when they are deleted, each step a random moment later, and use volumes as the kubelet does: it says so first, and
// mounts what is said to be attached.
type fleet struct {
	*place
	ctx context.Context
	t   *testing.T

	mu    sync.Mutex
	rand  *rand.Rand
	works map[types.UID]*work
	busy  sync.WaitGroup
	// inUse are the volumes of each node, with how many pods use them; writing the node's status is one at a time.
	inUse [nodeCount]struct {
		sync.Mutex
		volumes map[corev1.UniqueVolumeName]int
	}
}

// work is what a node does about one pod.
type work struct {
	pod *corev1.Pod
	// ending is closed when the pod's deletion was asked for.
	ending chan struct{}
}

func newFleet(ctx context.Context, t *testing.T, p *place, seed uint64) *fleet {
	f := &fleet{place: p, ctx: ctx, t: t, rand: rand.New(rand.NewPCG(seed, 1)), works: map[types.UID]*work{}}
	for i := range f.inUse {
		f.inUse[i].volumes = map[corev1.UniqueVolumeName]int{}
	}
	return f
}

func nodeName(i int) string { return fmt.Sprint("node-", i) }

// settle waits a random moment; false says that it is over, or, if the work is given, that its pod is to end.
func (f *fleet) settle(w *work) bool {
	f.mu.Lock()
	d := time.Duration(f.rand.Int64N(int64(slowest)))
	f.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	var ending chan struct{}
	if w != nil {
		ending = w.ending
	}
	select {
	case <-t.C:
		return true
	case <-ending:
		return false
	case <-f.ctx.Done():
		return false
	}
}

// chance is true once in n times.
func (f *fleet) chance(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rand.IntN(n) == 0
}

// see takes a change.
func (f *fleet) see(e event) {
	switch o := e.object.(type) {
	case *corev1.Pod:
		f.seePod(o, e.typ == watch.Deleted)
	case *storagev1.VolumeAttachment:
		if e.typ != watch.Deleted {
			f.busy.Go(func() { f.attach(o) })
		}
	}
}

func (f *fleet) seePod(p *corev1.Pod, gone bool) {
	if p.Spec.NodeName == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.works[p.UID]
	if w == nil {
		if gone || terminal(p) {
			return
		}
		w = &work{pod: p, ending: make(chan struct{})}
		f.works[p.UID] = w
		f.busy.Go(func() { f.run(w) })
	}
	if gone || p.DeletionTimestamp != nil {
		select {
		case <-w.ending:
		default:
			close(w.ending)
		}
	}
}

// run is a pod's life on its node.
func (f *fleet) run(w *work) {
	var node int
	if _, err := fmt.Sscanf(w.pod.Spec.NodeName, "node-%d", &node); err != nil {
		f.t.Errorf("pod %s is on node %q", w.pod.Name, w.pod.Spec.NodeName)
		return
	}
	ofJob := w.pod.Annotations[batchv1.JobCompletionIndexAnnotation] != ""
	volumes := f.volumesOf(w.pod)
	f.use(node, volumes, 1)
	started := f.settle(w) && f.mounted(node, volumes, w)
	if started {
		f.status(w.pod, corev1.PodRunning)
	}
	phase := corev1.PodFailed
	if ofJob && started && f.settle(w) {
		if !f.chance(5) {
			phase = corev1.PodSucceeded
		}
	} else {
		select {
		case <-w.ending:
		case <-f.ctx.Done():
			return
		}
		if !f.settle(nil) {
			return
		}
	}
	f.place.note(f.history.ended, w.pod.UID)
	f.use(node, volumes, -1)
	if ofJob {
		f.status(w.pod, phase)
		select {
		case <-w.ending:
		case <-f.ctx.Done():
			return
		}
	}
	err := f.pods.DeleteWith(f.ctx, w.pod.Namespace, w.pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)),
			Preconditions: metav1.NewUIDPreconditions(string(w.pod.UID))})
	f.bear("ending pod "+w.pod.Name, err)
}

// bear reports an error that is not of an object which has gone or was made again under its name, or of the end of all.
func (f *fleet) bear(what string, err error) {
	if err != nil && f.ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) &&
		!isOtherUID(err) {
		f.t.Errorf("%s: %v", what, err)
	}
}

// isOtherUID tells that a patch which names its object's UID met another object of that name. Of a PATCH an API server
// says that by 422, as Kubernetes' does, and only of a PUT by 409.
func isOtherUID(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil ||
		len(status.Status().Details.Causes) == 0 {
		return false
	}
	return !slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Field != "metadata.uid"
	})
}

func (f *fleet) status(p *corev1.Pod, phase corev1.PodPhase) {
	serves := corev1.ConditionFalse
	if phase == corev1.PodRunning {
		serves = corev1.ConditionTrue
	}
	patch := fmt.Appendf(nil,
		`{"metadata":{"uid":%q},"status":{"phase":%q,"conditions":[{"type":"Ready","status":%q,"lastTransitionTime":%q}]}}`, p.UID, phase, serves, time.Now().UTC().Format(time.RFC3339))
	_, err := f.pods.Patch(f.ctx, p.Namespace, p.Name, types.StrategicMergePatchType, patch, "status")
	f.bear("writing the status of pod "+p.Name, err)
}

// volumesOf are the pod's volumes, whose claims are bound since the pod has a node.
func (f *fleet) volumesOf(p *corev1.Pod) []corev1.UniqueVolumeName {
	var out []corev1.UniqueVolumeName
	for _, name := range claimsOf(p) {
		c, err := f.claims.Get(f.ctx, p.Namespace, name)
		if err != nil {
			f.bear("reading claim "+name, err)
			continue
		}
		out = append(out, corev1.UniqueVolumeName("kubernetes.io/csi/"+driver+"^"+c.Spec.VolumeName))
	}
	return out
}

// use counts users of volumes up or down and says in the node's status which ones have any.
func (f *fleet) use(node int, volumes []corev1.UniqueVolumeName, by int) {
	if len(volumes) == 0 {
		return
	}
	u := &f.inUse[node]
	u.Lock()
	defer u.Unlock()
	for _, v := range volumes {
		if u.volumes[v] += by; u.volumes[v] == 0 {
			delete(u.volumes, v)
		}
	}
	patch := []byte(`{"status":{"volumesInUse":[`)
	for v := range u.volumes {
		if patch[len(patch)-1] != '[' {
			patch = append(patch, ',')
		}
		patch = fmt.Appendf(patch, "%q", v)
	}
	_, err := f.nodes.Patch(f.ctx, "", nodeName(node), types.MergePatchType, append(patch, "]}}"...), "status")
	f.bear("writing the volumes in use of "+nodeName(node), err)
}

// mounted waits until the node's status says that the volumes are attached.
func (f *fleet) mounted(node int, volumes []corev1.UniqueVolumeName, w *work) bool {
	for len(volumes) > 0 {
		n, err := f.nodes.Get(f.ctx, "", nodeName(node))
		f.bear("reading "+nodeName(node), err)
		if err == nil && !slices.ContainsFunc(volumes, func(v corev1.UniqueVolumeName) bool {
			return !slices.ContainsFunc(n.Status.VolumesAttached, func(a corev1.AttachedVolume) bool {
				return a.Name == v
			})
		}) {
			return true
		}
		if !f.settle(w) {
			return false
		}
	}
	return true
}

// attach is the driver's attacher: it attaches what it is asked to, and lets go of what is to be detached.
func (f *fleet) attach(a *storagev1.VolumeAttachment) {
	if !f.settle(nil) {
		return
	}
	var err error
	switch holds := slices.Contains(a.Finalizers, detaching); {
	case a.DeletionTimestamp == nil && !holds:
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"finalizers":[%q]}}`, a.UID, detaching)
		_, err = f.attachments.Patch(f.ctx, "", a.Name, types.MergePatchType, patch)
	case a.DeletionTimestamp == nil && !a.Status.Attached:
		_, err = f.attachments.Patch(f.ctx, "", a.Name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"uid":%q},"status":{"attached":true}}`, a.UID), "status")
	case a.DeletionTimestamp != nil && holds:
		_, err = f.attachments.Patch(f.ctx, "", a.Name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"uid":%q,"finalizers":null}}`, a.UID))
	}
	f.bear("attaching with "+a.Name, err)
}
