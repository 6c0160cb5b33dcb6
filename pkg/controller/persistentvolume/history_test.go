package persistentvolume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"bonsai/api/core/volumebinding"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// world is a server with volumes and claims that loses answers and refuses requests now and then, users who make and
// delete them, and a controller that sees all of it late and is killed between any two requests.
type world struct {
	t    *testing.T
	r    *rand.Rand
	fake *controllertest.Fake

	mu      sync.Mutex
	version int
	made    int
	volumes map[string]*corev1.PersistentVolume
	claims  map[string]*corev1.PersistentVolumeClaim
	trouble int    // of a hundred requests
	lives   int    // requests until the controller is killed; no more than none are answered after it
	writes  int    // that were done
	late    []late // that the controller has not seen yet

	c *Controller
}

// late is a change on its way to a cache.
type late struct {
	volume  *corev1.PersistentVolume
	claim   *corev1.PersistentVolumeClaim
	deleted bool
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 11)), volumes: map[string]*corev1.PersistentVolume{},
		claims: map[string]*corev1.PersistentVolumeClaim{}}
	w.fake = &controllertest.Fake{Answer: w.answer}
	w.restart()
	return w
}

// restart is kill -9 and a new leader, which begins with complete lists, and no memory.
func (w *world) restart() {
	d := w.fake.Deps(w.t, time.Time{})
	d.Events, d.Workers = &record.FakeRecorder{}, 1
	c, err := New(d, Config{Period: time.Second, Provisions: true})
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.c, w.late, w.lives = c, nil, 5+w.r.IntN(60)
	for _, v := range w.volumes {
		controllertest.Put(w.t, c.volumes.cache, v.DeepCopy())
	}
	for _, claim := range w.claims {
		controllertest.Put(w.t, c.claims.cache, claim.DeepCopy())
	}
}

func (w *world) next() string {
	w.version++
	return strconv.Itoa(w.version)
}

func (w *world) storeVolume(v *corev1.PersistentVolume) {
	v.ResourceVersion = w.next()
	w.volumes[v.Name] = v
	w.late = append(w.late, late{volume: v.DeepCopy()})
}

func (w *world) storeClaim(c *corev1.PersistentVolumeClaim) {
	c.ResourceVersion = w.next()
	w.claims[c.Name] = c
	w.late = append(w.late, late{claim: c.DeepCopy()})
}

// see shows the controller the next change of volumes or of claims: each kind comes in order, but not the two together.
func (w *world) see() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ofVolume := w.r.IntN(2) == 0
	i := slices.IndexFunc(w.late, func(e late) bool { return (e.volume != nil) == ofVolume })
	if i < 0 {
		return len(w.late) > 0
	}
	e := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	if e.volume != nil {
		show(w.t, w.c.volumes.cache, e.volume, e.deleted)
	} else {
		show(w.t, w.c.claims.cache, e.claim, e.deleted)
	}
	return true
}

func show[T apiclient.Object](t *testing.T, cache *controller.Informer[T], o T, deleted bool) {
	if !deleted {
		controllertest.Put(t, cache, o)
	} else if err := cache.Raw().GetIndexer().Delete(o); err != nil {
		t.Fatal(err)
	}
}

// answer is the server. It may do nothing and say so, or do it and not say so; a controller that was killed gets no
// answers.
func (w *world) answer(call controllertest.Call) (runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lives--
	luck := w.r.IntN(100)
	if w.lives < 0 || luck < w.trouble/2 {
		return nil, apierrors.NewInternalError(errors.New("nothing done"))
	}
	out, err := w.do(call)
	if luck < w.trouble || w.lives == 0 {
		return nil, apierrors.NewTimeoutError("the answer is lost", 1)
	}
	return out, err
}

func (w *world) do(call controllertest.Call) (runtime.Object, error) {
	path, status := strings.CutSuffix(call.Path, "/status")
	name := path[strings.LastIndex(path, "/")+1:]
	gr := schema.GroupResource{Resource: "objects"}
	conflict := apierrors.NewConflict(gr, name, errors.New("changed meanwhile"))
	if strings.Contains(path, "/persistentvolumes/") {
		was := w.volumes[name]
		if was == nil {
			return nil, apierrors.NewNotFound(gr, name)
		}
		if call.Method == "GET" {
			return was.DeepCopy(), nil
		}
		v := call.Object.(*corev1.PersistentVolume)
		if v.ResourceVersion != was.ResourceVersion {
			return nil, conflict
		}
		w.writes++
		out := v.DeepCopy()
		if status {
			out = was.DeepCopy()
			out.Status = v.Status
		} else {
			out.Status = was.Status
		}
		w.checkVolume(was, out)
		w.storeVolume(out)
		return out.DeepCopy(), nil
	}
	was := w.claims[name]
	if was == nil {
		return nil, apierrors.NewNotFound(gr, name)
	}
	if call.Method == "GET" {
		return was.DeepCopy(), nil
	}
	c := call.Object.(*corev1.PersistentVolumeClaim)
	if c.ResourceVersion != was.ResourceVersion || c.UID != was.UID {
		return nil, conflict
	}
	w.writes++
	out := c.DeepCopy()
	if status {
		out = was.DeepCopy()
		out.Status = c.Status
	} else {
		out.Status = was.Status
	}
	w.checkClaim(was, out)
	w.storeClaim(out)
	return out.DeepCopy(), nil
}

// checkVolume: no volume is taken from a claim that has it, and none is released whose claim is there.
func (w *world) checkVolume(was, is *corev1.PersistentVolume) {
	r := was.Spec.ClaimRef
	if r == nil || r.UID == "" {
		return
	}
	c := w.claims[r.Name]
	if c == nil || c.UID != r.UID {
		return
	}
	if _, done := c.Annotations[volumebinding.BindCompleted]; done && c.Spec.VolumeName == was.Name &&
		(is.Spec.ClaimRef == nil || is.Spec.ClaimRef.UID != r.UID) {
		w.t.Errorf("volume %s is taken from claim %s, which has it", was.Name, c.Name)
	}
	if settled(is) && !settled(was) && (c.Spec.VolumeName == "" || c.Spec.VolumeName == was.Name) {
		w.t.Errorf("volume %s is %s, its claim %s is there", was.Name, is.Status.Phase, c.Name)
	}
}

// checkClaim: a claim is said to have a volume only if that is its own, and to have lost it only if it has.
func (w *world) checkClaim(was, is *corev1.PersistentVolumeClaim) {
	if was.Spec.VolumeName != "" && is.Spec.VolumeName != was.Spec.VolumeName {
		w.t.Errorf("claim %s names %s after %s", is.Name, is.Spec.VolumeName, was.Spec.VolumeName)
	}
	v := w.volumes[is.Spec.VolumeName]
	switch {
	case is.Status.Phase == corev1.ClaimLost && was.Status.Phase != corev1.ClaimLost && v != nil &&
		v.Spec.ClaimRef != nil && v.Spec.ClaimRef.UID == is.UID:
		w.t.Errorf("claim %s is said to have lost %s, which names it", is.Name, v.Name)
	case is.Status.Phase == corev1.ClaimBound && was.Status.Phase != corev1.ClaimBound && v != nil &&
		(v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID != is.UID):
		w.t.Errorf("claim %s is said to be bound to %s, which does not name it", is.Name, v.Name)
	}
}

// user makes or deletes something, or is the scheduler that gives a waiting claim a volume.
func (w *world) user() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made++
	size := resource.MustParse(fmt.Sprint(1+w.r.IntN(3), "Gi"))
	switch n := w.r.IntN(10); {
	case n < 3:
		name := fmt.Sprint("c", w.r.IntN(5))
		if w.claims[name] != nil {
			return
		}
		c := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(fmt.Sprint("u", w.made))}}
		c.Spec.StorageClassName, c.Spec.Resources.Requests = ptr.To(""),
			corev1.ResourceList{corev1.ResourceStorage: size}
		c.Status.Phase = corev1.ClaimPending
		if w.r.IntN(6) == 0 {
			c.Spec.VolumeName = fmt.Sprint("v", w.r.IntN(6))
		}
		w.storeClaim(c)
	case n < 7:
		name := fmt.Sprint("v", w.r.IntN(6))
		if w.volumes[name] != nil {
			return
		}
		v := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint("u", w.made))}}
		v.Spec.Capacity, v.Spec.PersistentVolumeReclaimPolicy = corev1.ResourceList{corev1.ResourceStorage: size},
			corev1.PersistentVolumeReclaimRetain
		v.Status.Phase = corev1.VolumePending
		if w.r.IntN(4) == 0 {
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: fmt.Sprint("c", w.r.IntN(5))}
		}
		w.storeVolume(v)
	case n < 8:
		if c := w.claims[fmt.Sprint("c", w.r.IntN(5))]; c != nil {
			delete(w.claims, c.Name)
			w.late = append(w.late, late{claim: c, deleted: true})
		}
	case n < 9:
		if v := w.volumes[fmt.Sprint("v", w.r.IntN(6))]; v != nil && (settled(v) || w.r.IntN(4) == 0) {
			delete(w.volumes, v.Name)
			w.late = append(w.late, late{volume: v, deleted: true})
		}
	default: // the scheduler
		v, c := w.volumes[fmt.Sprint("v", w.r.IntN(6))], w.claims[fmt.Sprint("c", w.r.IntN(5))]
		if v != nil && c != nil && c.Spec.VolumeName == "" && volumebinding.Claimable(v, c) {
			bound, _ := volumebinding.Bind(v, c)
			w.storeVolume(bound)
		}
	}
}

// work reconciles some claims and volumes at the same time.
func (w *world) work() {
	var all sync.WaitGroup
	some, others := w.r.Perm(5)[:3], w.r.Perm(6)[:3] // one worker at a time for each key
	for i := range some {
		claim, volume := controller.Key{Namespace: "ns", Name: fmt.Sprint("c", some[i])},
			controller.Key{Name: fmt.Sprint("v", others[i])}
		all.Go(func() { _, _ = w.c.reconcileClaim(context.Background(), claim) })
		all.Go(func() { _, _ = w.c.reconcileVolume(context.Background(), volume) })
	}
	all.Wait()
	w.mu.Lock()
	killed := w.lives <= 0
	w.mu.Unlock()
	if killed {
		w.restart()
	}
}

// settle lets the controller work in peace until nothing changes any more.
func (w *world) settle() {
	w.trouble = 0
	for range 50 {
		w.lives = 1_000_000
		before := w.writes
		for w.see() {
		}
		for _, name := range slices.Sorted(maps.Keys(w.claims)) {
			_, _ = w.c.reconcileClaim(w.t.Context(), controller.Key{Namespace: "ns", Name: name})
		}
		for _, name := range slices.Sorted(maps.Keys(w.volumes)) {
			_, _ = w.c.reconcileVolume(w.t.Context(), controller.Key{Name: name})
		}
		if w.writes == before && len(w.late) == 0 {
			return
		}
	}
	w.t.Error("the controller does not come to rest")
}

// check looks at the end: everybody has what he can have, once.
func (w *world) check() {
	of := map[types.UID]string{}
	for _, v := range w.volumes {
		r := v.Spec.ClaimRef
		if r == nil || r.UID == "" {
			if v.Status.Phase != corev1.VolumeAvailable {
				w.t.Errorf("volume %s of nobody is %s", v.Name, v.Status.Phase)
			}
			continue
		}
		c := w.claims[r.Name]
		if c == nil || c.UID != r.UID {
			if v.Status.Phase != corev1.VolumeReleased {
				w.t.Errorf("volume %s of a claim that is gone is %s", v.Name, v.Status.Phase)
			}
			continue
		}
		if of[r.UID] != "" {
			w.t.Errorf("claim %s is named by %s and %s", c.Name, of[r.UID], v.Name)
		}
		of[r.UID] = v.Name
		if c.Spec.VolumeName != v.Name || c.Status.Phase != corev1.ClaimBound || v.Status.Phase != corev1.VolumeBound {
			w.t.Errorf("volume %s, which is %s, names claim %s, which is %s and names %q", v.Name, v.Status.Phase,
				c.Name, c.Status.Phase, c.Spec.VolumeName)
		}
	}
	for _, c := range w.claims {
		if (c.Status.Phase == corev1.ClaimBound) != (of[c.UID] != "") {
			w.t.Errorf("claim %s is %s and named by %q", c.Name, c.Status.Phase, of[c.UID])
		}
		for _, v := range w.volumes {
			if c.Spec.VolumeName == "" && volumebinding.Claimable(v, c) {
				w.t.Errorf("claim %s waits beside volume %s", c.Name, v.Name)
			}
		}
	}
}

// TestHistories: whatever happens, and wherever the controller is killed, no volume has two claims and no claim two
// volumes, none is released that is in use, and in the end every claim has what there is for it.
func TestHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			w.trouble = 10
			for range 250 {
				switch n := w.r.IntN(10); {
				case n < 2:
					w.user()
				case n < 6:
					w.see()
				default:
					w.work()
				}
			}
			w.settle()
			w.check()
		})
	}
}
