package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/core/volumebinding"
)

func (f *server) BindVolume(_ context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return pv, nil
}

func (f *server) SelectNode(_ context.Context, c *corev1.PersistentVolumeClaim,
	_ string) (*corev1.PersistentVolumeClaim, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return c, f.lost
}

func (f *server) node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// provisioned is a claim whose volume is made when the pod has a node, and its pod.
func provisioned(name string) (*corev1.PersistentVolumeClaim, *corev1.Pod) {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: types.UID("claim-" + name),
			ResourceVersion: "1"},
		Spec:   corev1.PersistentVolumeClaimSpec{StorageClassName: new("made")},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
	p := pending(name, "100m")
	p.Spec.Volumes = []corev1.Volume{
		{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	return c, p
}

// finish is what a provisioner and the binder do for a claim.
func (f *server) finish(c *corev1.PersistentVolumeClaim) {
	v, _ := volumebinding.Bind(
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v-" + c.Name, ResourceVersion: "2"}}, c)
	f.s.VolumeChanged(nil, v)
	done, _ := volumebinding.Complete(c, v)
	done.ResourceVersion = "3"
	f.s.ClaimChanged(c, done)
}

// TestPodsThatWaitForVolumesHoldNobodyUp: more of them than there are binders wait, while others are bound; each is
// bound when its volume is.
func TestPodsThatWaitForVolumesHoldNobodyUp(t *testing.T) {
	inBubble(t, func(t *testing.T, f *server) {
		later := storagev1.VolumeBindingWaitForFirstConsumer
		f.s.ClassChanged(nil, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "made"}, Provisioner: "csi",
			VolumeBindingMode: &later})
		f.s.NodeChanged(nil, node("n", "8"))
		var claims []*corev1.PersistentVolumeClaim
		for i := range 6 {
			c, p := provisioned(fmt.Sprint("p", i))
			claims = append(claims, c)
			f.s.ClaimChanged(nil, c)
			f.s.PodChanged(nil, p)
		}
		f.s.PodChanged(nil, pending("plain", "1"))
		synctest.Wait()
		if f.where("plain") != "n" || len(f.bound) != 1 {
			t.Errorf("bound %v, want only the pod without a claim", f.bound)
		}
		for _, c := range claims {
			f.finish(c)
		}
		synctest.Wait()
		if len(f.bound) != 7 {
			t.Errorf("bound %v, want all", f.bound)
		}
	})
}

// TestAPodWaitsForItsClaim: it is told why, and scheduled when the claim comes; another claim does not wake it.
func TestAPodWaitsForItsClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, f *server) {
		f.s.NodeChanged(nil, node("n", "8"))
		c, p := provisioned("p")
		f.s.PodChanged(nil, p)
		synctest.Wait()
		const want = `0/1 nodes are available: persistentvolumeclaim "p" not found.`
		if got := f.condition("p"); got == nil || got.Message != want {
			t.Fatalf("condition %+v, want %q", got, want)
		}
		other, _ := provisioned("other")
		f.s.ClaimChanged(nil, other)
		if n := f.s.Queue.Counts(); n.Unschedulable != 1 {
			t.Errorf("%+v: another claim woke the pod", n)
		}
		v, _ := volumebinding.Bind(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}, c)
		f.s.VolumeChanged(nil, v)
		done, _ := volumebinding.Complete(c, v)
		f.s.ClaimChanged(nil, done)
		f.s.NodeChanged(nil, node("n2", "8"))
		synctest.Wait()
		if f.where("p") == "" {
			t.Error("the pod waits on, although its claim is bound")
		}
	})
}

// TestAPodOutlivesItsClaim: a claim that is deleted while the pod is being bound is not found then. The pod is there
// all the same, and is bound with the next claim of that name.
func TestAPodOutlivesItsClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, f *server) {
		later := storagev1.VolumeBindingWaitForFirstConsumer
		f.s.ClassChanged(nil, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "made"}, Provisioner: "csi",
			VolumeBindingMode: &later})
		f.s.NodeChanged(nil, node("n", "8"))
		first, p := provisioned("p")
		f.lost = apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), first.Name)
		f.s.ClaimChanged(nil, first)
		f.s.PodChanged(nil, p)
		synctest.Wait()
		f.s.ClaimChanged(first, nil)
		next, _ := provisioned("p")
		next.UID = "next"
		f.mu.Lock()
		f.lost = nil
		f.mu.Unlock()
		f.s.ClaimChanged(nil, next)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		f.finish(next)
		synctest.Wait()
		if f.where("p") != "n" {
			t.Errorf("the pod is not bound, and in no queue: %+v", f.s.Queue.Counts())
		}
	})
}
