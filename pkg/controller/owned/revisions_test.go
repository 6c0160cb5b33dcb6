package owned_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/owned"
)

// TestRevisions: who adds a revision in a DaemonSet's name wakes nobody; a change and a deletion wake the DaemonSet,
// and only of its own revisions.
func TestRevisions(t *testing.T) {
	t.Parallel()
	kind := appsv1.SchemeGroupVersion.WithKind("DaemonSet")
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "u"}}
	rev := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d-1",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, kind)}}}
	var woken []controller.Key
	h := owned.Revisions{Kind: kind, Wake: func(k controller.Key) { woken = append(woken, k) }}.Handlers()
	if h.Add != nil {
		t.Error("an addition is listened to")
	}
	stranger := rev.DeepCopy()
	stranger.OwnerReferences[0].Kind = "StatefulSet"
	h.Update(stranger, stranger)
	h.Delete(&appsv1.ControllerRevision{})
	if len(woken) > 0 {
		t.Errorf("revisions of others woke %v", woken)
	}
	h.Update(rev, rev)
	h.Delete(rev)
	if key := controller.KeyOf(ds); len(woken) != 2 || woken[0] != key || woken[1] != key {
		t.Errorf("woken: %v, want %s twice", woken, key)
	}
}
