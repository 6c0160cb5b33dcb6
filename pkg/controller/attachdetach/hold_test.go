package attachdetach

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// holding asks for the attachment to node a, which the server answers with err, and returns what node b does of it.
func holding(t *testing.T, err error) (b func() []string, c *Controller, later func(time.Duration)) {
	t.Helper()
	fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
		a, _ := call.Object.(*storagev1.VolumeAttachment)
		switch {
		case call.Method == "POST" && a.Spec.NodeName == "a":
			return a, err
		case call.Method == "GET": // nothing is stored
			return nil, apierrors.NewNotFound(storagev1.Resource("volumeattachments"), "x")
		}
		return call.Object, nil
	}}
	c = world(t, fake, corev1.ReadWriteOnce)
	now := start
	c.Now = func() time.Time { return now }
	if _, got := c.Reconcile(t.Context(), controller.Key{Name: "a"}); (got == nil) != (err == nil) {
		t.Errorf("%v, want %v", got, err)
	}
	return func() []string {
		if _, err := c.Reconcile(t.Context(), controller.Key{Name: "b"}); err != nil {
			t.Error(err)
		}
		return slices.DeleteFunc(attached(fake), func(n string) bool { return n == "a" })
	}, c, func(d time.Duration) { now = now.Add(d) }
}

// TestLostAnswer: the server may have made the attachment although its answer was lost, so the volume stays the node's
// until it cannot be made any more, and the server says that there is none.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	b, _, later := holding(t, errors.New("connection reset"))
	if got := b(); len(got) > 0 {
		t.Errorf("attached to %v at once", got)
	}
	later(unanswered - 1)
	if got := b(); len(got) > 0 {
		t.Errorf("attached to %v while it could still be made", got)
	}
	later(1)
	if got := append(b(), b()...); !slices.Contains(got, "b") {
		t.Errorf("attached to %v, although there is no attachment", got)
	}
}

// TestRefused: what the server refused it has not made.
func TestRefused(t *testing.T) {
	t.Parallel()
	b, _, _ := holding(t, apierrors.NewForbidden(storagev1.Resource("volumeattachments"), "x", errors.New("no")))
	if got := b(); !slices.Contains(got, "b") {
		t.Errorf("attached to %v", got)
	}
}

// TestDeletionOfAnEarlierOne: the news that an earlier attachment to the node went does not free the volume for others.
func TestDeletionOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	b, c, _ := holding(t, errors.New("connection reset"))
	at := attachment(func(a *storagev1.VolumeAttachment) {
		a.Name, a.Spec.NodeName = attachmentName("h", "d", "a"), "a"
	})[0]
	c.attachmentChanged(at)
	if got := b(); len(got) > 0 {
		t.Errorf("attached to %v", got)
	}
	c.attachmentSeen(at) // and its own frees it: the cache knows it from then on
	if got := b(); !slices.Contains(got, "b") {
		t.Errorf("attached to %v, with no attachment in the cache", got)
	}
}
