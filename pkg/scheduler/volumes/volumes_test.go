package volumes

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/core/volumebinding"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// server is an API server that stores what is written, or refuses it.
type server struct {
	refuse  error
	volumes []string // written, with their claims
	claims  []string // written, with their nodes
}

func (s *server) BindVolume(_ context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if s.refuse != nil {
		return nil, s.refuse
	}
	s.volumes = append(s.volumes, pv.Name+" "+pv.Spec.ClaimRef.Name)
	out := pv.DeepCopy()
	out.ResourceVersion = "100"
	return out, nil
}

func (s *server) SelectNode(ctx context.Context, c *corev1.PersistentVolumeClaim,
	node string) (*corev1.PersistentVolumeClaim, error) {
	if err := cmp.Or(s.refuse, ctx.Err()); err != nil {
		return nil, err
	}
	s.claims = append(s.claims, c.Name+" "+node)
	out := c.DeepCopy()
	out.ResourceVersion = "100"
	return out, nil
}

func claimOf(name, class, size string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "5"},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
}

func volumeOf(name, class, size, host string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "5"},
		Spec: corev1.PersistentVolumeSpec{StorageClassName: class,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			NodeAffinity: &corev1.VolumeNodeAffinity{
				Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{host}}}}}}}},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
}

func nodeOf(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{corev1.LabelHostname: name}}}
}

func podWith(claims ...string) *model.PodInfo {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	for _, c := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes,
			corev1.Volume{VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c}}})
	}
	return model.NewPodInfo(p)
}

// known has the classes "local", of volumes made by hand, and "made", of volumes that are provisioned; both wait for
// the first pod.
func known(api API) *Volumes {
	v := New(api)
	later := storagev1.VolumeBindingWaitForFirstConsumer
	for name, provisioner := range map[string]string{"local": volumebinding.NoProvisioner, "made": "csi"} {
		v.ClassChanged(nil, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner,
			VolumeBindingMode: &later})
	}
	return v
}

// TestRefusedPods: claims for which no node can do anything, in upstream's words.
func TestRefusedPods(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"pod has unbound immediate PersistentVolumeClaims": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.StorageClassName = new("none")
		},
		`persistentvolumeclaim "c" not found`: func(c *corev1.PersistentVolumeClaim) { c.Name = "d" },
		`persistentvolumeclaim "c" is being deleted`: func(c *corev1.PersistentVolumeClaim) {
			c.DeletionTimestamp = &metav1.Time{}
		},
		`persistentvolumeclaim "c" bound to non-existent persistentvolume "v"`: func(c *corev1.PersistentVolumeClaim) {
			c.Status.Phase, c.Spec.VolumeName = corev1.ClaimLost, "v"
		},
	} {
		v := known(nil)
		c := claimOf("c", "local", "1Gi")
		change(c)
		v.ClaimChanged(nil, c)
		if _, st := v.Needs(podWith("c")); st.Message() != want || st.Code != framework.UnschedulableAndUnresolvable {
			t.Errorf("%v, want %s", st, want)
		}
	}
	made := model.NewPodInfo(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{
			{Name: "x", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}}})
	v := known(nil)
	if _, st := v.Needs(made); st.Message() !=
		`waiting for ephemeral volume controller to create the persistentvolumeclaim "p-x"` {
		t.Error(st)
	}
	v.ClaimChanged(nil, claimOf("p-x", "made", "1Gi"))
	if _, st := v.Needs(made); st.Message() != "PVC ns/p-x was not created for pod ns/p (pod is not owner)" {
		t.Error(st)
	}
}

// TestChoice: two claims get two volumes, the smallest that fit, where all have one; what is reserved is nobody else's.
func TestChoice(t *testing.T) {
	t.Parallel()
	v := known(nil)
	for _, c := range []*corev1.PersistentVolumeClaim{claimOf("a", "local", "1Gi"), claimOf("b", "local", "2Gi"),
		claimOf("c", "local", "1Gi")} {
		v.ClaimChanged(nil, c)
	}
	for _, pv := range []*corev1.PersistentVolume{volumeOf("small", "local", "1Gi", "n1"),
		volumeOf("large", "local", "9Gi", "n1"), volumeOf("middle", "local", "3Gi", "n1"),
		volumeOf("other", "local", "9Gi", "n2"), volumeOf("class", "made", "1Gi", "n1")} {
		v.VolumeChanged(nil, pv)
	}
	got, st := v.Reserve(podWith("b", "a"), nodeOf("n1"))
	if !st.IsSuccess() || len(got.Static) != 2 || got.Static[0].Volume.Name != "small" ||
		got.Static[1].Volume.Name != "middle" || got.Static[1].Claim.Name != "b" {
		t.Fatalf("%+v, %v", got, st)
	}
	if got, st := v.Reserve(podWith("b", "a"), nodeOf("n2")); got != nil || st.Message() != reasonBindConflict {
		t.Errorf("a node with one volume for two claims: %+v, %v", got, st)
	}
	if third, st := v.Reserve(podWith("c"), nodeOf("n1")); !st.IsSuccess() || third.Static[0].Volume.Name != "large" {
		t.Errorf("another pod: %+v, %v", third, st)
	}
	v.Release(got)
	v.Release(got) // twice is harmless
	if again, st := v.Reserve(podWith("a"), nodeOf("n1")); !st.IsSuccess() || again.Static[0].Volume.Name != "small" {
		t.Errorf("given back: %+v, %v", again, st)
	}
}

// TestTheVolumeThatNamesTheClaim: it is taken although another one is smaller, and no other one where it cannot be
// used.
func TestTheVolumeThatNamesTheClaim(t *testing.T) {
	t.Parallel()
	v := known(nil)
	v.ClaimChanged(nil, claimOf("c", "local", "1Gi"))
	own := volumeOf("own", "local", "9Gi", "n1")
	own.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "c"}
	for _, pv := range []*corev1.PersistentVolume{own, volumeOf("small", "local", "1Gi", "n1"),
		volumeOf("there", "local", "1Gi", "n2")} {
		v.VolumeChanged(nil, pv)
	}
	if _, st := v.Reserve(podWith("c"), nodeOf("n2")); st.Message() != reasonBindConflict {
		t.Error("elsewhere:", st)
	}
	if got, st := v.Reserve(podWith("c"), nodeOf("n1")); !st.IsSuccess() || got.Static[0].Volume.Name != "own" {
		t.Errorf("%+v, %v", got, st)
	}
}

// TestBind: what was chosen is written, and bound when others have said so; nothing less will do.
func TestBind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &server{}
		v := known(api)
		old, made := claimOf("old", "local", "1Gi"), claimOf("made", "made", "1Gi")
		v.ClaimChanged(nil, old)
		v.ClaimChanged(nil, made)
		v.VolumeChanged(nil, volumeOf("v", "local", "1Gi", "n1"))
		choice, st := v.Reserve(podWith("old", "made"), nodeOf("n1"))
		if !st.IsSuccess() {
			t.Fatal(st)
		}
		if other, st := v.Reserve(podWith("made"), nodeOf("n2")); st.Message() != reasonBindConflict {
			t.Errorf("a claim whose volume is made for another node: %+v, %v", other, st)
		}
		done := make(chan error, 1)
		go func() { done <- v.Bind(t.Context(), choice, nodeOf("n1"), time.Minute) }()
		waits := func(what string) {
			t.Helper()
			synctest.Wait()
			select {
			case err := <-done:
				t.Fatalf("%s: done, %v", what, err)
			default:
			}
		}
		waits("nothing is bound")
		if !slices.Equal(api.volumes, []string{"v old"}) || !slices.Equal(api.claims, []string{"made n1"}) {
			t.Errorf("written %v, %v", api.volumes, api.claims)
		}
		finish := func(c *corev1.PersistentVolumeClaim, volume string) {
			c, _ = volumebinding.Complete(c, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}})
			c.ResourceVersion = "200"
			v.ClaimChanged(nil, c)
		}
		finish(old, "v")
		waits("one of two")
		v.ClaimChanged(nil, made) // an event of before the write comes late
		waits("late news")
		finish(made, "new")
		waits("the volume is not seen yet")
		pv, _ := volumebinding.Bind(volumeOf("new", "made", "1Gi", "n1"), made)
		v.VolumeChanged(nil, pv)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestBindFails: who provisions gives the node up, the claim goes, the volume cannot be used there, the write is
// refused, the time is over.
func TestBindFails(t *testing.T) {
	t.Parallel()
	for want, happens := range map[string]func(v *Volumes, c *corev1.PersistentVolumeClaim, stop func()){
		`provisioning failed for PVC "c"`: func(v *Volumes, c *corev1.PersistentVolumeClaim, _ func()) {
			c.ResourceVersion = "200"
			v.ClaimChanged(nil, c)
		},
		`persistentvolumeclaim "ns/c" is gone`: func(v *Volumes, c *corev1.PersistentVolumeClaim, _ func()) {
			v.ClaimChanged(c, nil)
		},
		`pv "v" node affinity doesn't match node "n1"`: func(v *Volumes, c *corev1.PersistentVolumeClaim, _ func()) {
			pv, _ := volumebinding.Bind(volumeOf("v", "made", "1Gi", "n2"), c)
			v.VolumeChanged(nil, pv)
			c, _ = volumebinding.Complete(c, pv)
			c.ResourceVersion = "200"
			v.ClaimChanged(nil, c)
		},
		"context canceled": func(_ *Volumes, _ *corev1.PersistentVolumeClaim, stop func()) { stop() },
	} {
		synctest.Test(t, func(t *testing.T) {
			v := known(&server{})
			c := claimOf("c", "made", "1Gi")
			v.ClaimChanged(nil, c)
			choice, _ := v.Reserve(podWith("c"), nodeOf("n1"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- v.Bind(ctx, choice, nodeOf("n1"), time.Minute) }()
			synctest.Wait()
			happens(v, c.DeepCopy(), cancel)
			if err := <-done; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
	v := known(&server{refuse: errors.New("conflict")})
	v.ClaimChanged(nil, claimOf("c", "made", "1Gi"))
	choice, _ := v.Reserve(podWith("c"), nodeOf("n1"))
	if err := v.Bind(t.Context(), choice, nodeOf("n1"), time.Minute); err == nil {
		t.Error("a refused write is no error")
	}
	v.Release(choice)
	if _, st := v.Reserve(podWith("c"), nodeOf("n2")); !st.IsSuccess() {
		t.Error("given back:", st)
	}
}

// TestBindWithoutWaiting: a timeout of 0 fails at once, but the node is written, so that the volume is made and the
// next try succeeds.
func TestBindWithoutWaiting(t *testing.T) {
	t.Parallel()
	api := &server{}
	v := known(api)
	c := claimOf("c", "made", "1Gi")
	v.ClaimChanged(nil, c)
	bind := func() error {
		choice, st := v.Reserve(podWith("c"), nodeOf("n1"))
		if !st.IsSuccess() {
			t.Fatal(st)
		}
		defer v.Release(choice)
		return v.Bind(t.Context(), choice, nodeOf("n1"), 0)
	}
	if err := bind(); !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(api.claims, []string{"c n1"}) {
		t.Errorf("%v, written %v", err, api.claims)
	}
	pv, _ := volumebinding.Bind(volumeOf("v", "made", "1Gi", "n1"), c)
	v.VolumeChanged(nil, pv)
	c, _ = volumebinding.Complete(c, pv)
	c.ResourceVersion = "200"
	v.ClaimChanged(nil, c)
	if err := bind(); err != nil {
		t.Error("bound:", err)
	}
}

// TestNeedsStayAsTheyWere: verdicts are kept for all pods of a class, also when the one that they were made with has
// got a volume meanwhile.
func TestNeedsStayAsTheyWere(t *testing.T) {
	t.Parallel()
	v := known(nil)
	c := claimOf("c", "made", "1Gi")
	v.ClaimChanged(nil, c)
	needs, st := v.Needs(podWith("c"))
	if !st.IsSuccess() {
		t.Fatal(st)
	}
	pv, _ := volumebinding.Bind(volumeOf("v", "made", "1Gi", "n1"), c)
	v.VolumeChanged(nil, pv)
	if _, reasons := needs.On(nodeOf("n2")); len(reasons) > 0 {
		t.Errorf("refused for the volume of one pod: %v", reasons)
	}
	done, _ := volumebinding.Complete(c, pv)
	done.ResourceVersion = "6"
	v.ClaimChanged(c, done)
	if _, reasons := needs.On(nodeOf("n2")); len(reasons) > 0 {
		t.Errorf("refused for the claim of one pod: %v", reasons)
	}
}

// TestKey: pods whose volumes are provisioned alike are of one class, also while other pods' volumes come; one that can
// get a free volume is not.
func TestKey(t *testing.T) {
	t.Parallel()
	v := known(nil)
	key := model.KeyOf(v.Key)
	for _, name := range []string{"a", "b"} {
		v.ClaimChanged(nil, claimOf(name, "made", "1Gi"))
	}
	a := key(podWith("a"))
	pv, _ := volumebinding.Bind(volumeOf("v", "made", "1Gi", "n1"), claimOf("z", "made", "1Gi"))
	v.VolumeChanged(nil, pv)
	if b := key(podWith("b")); a != b {
		t.Error("two pods of one class have different keys")
	}
	v.VolumeChanged(nil, volumeOf("free", "made", "1Gi", "n1"))
	if x, y := key(podWith("a")), key(podWith("b")); x == a || x == y {
		t.Error("a free volume changes nothing")
	}
}
