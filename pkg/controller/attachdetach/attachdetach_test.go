package attachdetach

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// world is a volume whose claim pods on two nodes use.
func world(t *testing.T, fake *controllertest.Fake, modes ...corev1.PersistentVolumeAccessMode) *Controller {
	t.Helper()
	d := fake.Deps(t, start)
	d.Events = &record.FakeRecorder{}
	c, err := New(d, Config{})
	if err != nil {
		t.Fatal(err)
	}
	v := volume()
	v.Spec.AccessModes, v.Spec.ClaimRef = modes, &corev1.ObjectReference{Namespace: "ns", Name: "c", UID: "u"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "u"}}
	claim.Spec.VolumeName, claim.Status.Phase = "v", corev1.ClaimBound
	controllertest.Put(t, c.volumes, v)
	controllertest.Put(t, c.claims, claim)
	for _, name := range []string{"a", "b"} {
		controllertest.Put(t, c.nodes, node(func(n *corev1.Node) { n.Name = name }))
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "on-" + name}}
		p.Spec.NodeName = name
		p.Spec.Volumes = []corev1.Volume{
			{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
		controllertest.Put(t, c.pods, p)
	}
	return c
}

// attached are the nodes for which an attachment was made.
func attached(fake *controllertest.Fake) []string {
	var out []string
	for _, call := range fake.Calls() {
		if call.Method == "POST" {
			out = append(out, call.Object.(*storagev1.VolumeAttachment).Spec.NodeName)
		}
	}
	slices.Sort(out)
	return out
}

// TestOneNode: a volume for one node goes to one of two that ask at the same time, also while the caches know nothing
// of it; one for many to both.
func TestOneNode(t *testing.T) {
	t.Parallel()
	for mode, want := range map[corev1.PersistentVolumeAccessMode]int{corev1.ReadWriteOnce: 1,
		corev1.ReadWriteOncePod: 1, corev1.ReadWriteMany: 2, corev1.ReadOnlyMany: 2} {
		fake := &controllertest.Fake{}
		c := world(t, fake, mode)
		var all sync.WaitGroup
		for _, name := range []string{"a", "b", "a", "b"} {
			all.Go(func() {
				if _, err := c.Reconcile(t.Context(), controller.Key{Name: name}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := slices.Compact(attached(fake)); len(got) != want {
			t.Errorf("%s: attached to %v, want %d nodes", mode, got, want)
		}
	}
}

// TestHandOver: the other node gets the volume when the first one's attachment is gone, not before.
func TestHandOver(t *testing.T) {
	t.Parallel()
	fake := &controllertest.Fake{}
	c := world(t, fake, corev1.ReadWriteOnce)
	at := attachment(func(a *storagev1.VolumeAttachment) {
		a.Name, a.Spec.NodeName = attachmentName("h", "d", "a"), "a"
		done(a)
	})[0]
	controllertest.Put(t, c.attachments, at)
	key := controller.Key{Name: "b"}
	said := &record.FakeRecorder{Events: make(chan string, 1)}
	c.Events = said
	second, _ := c.pods.Get(controller.Key{Namespace: "ns", Name: "on-a"})
	second = second.DeepCopy()
	second.Name = "also"
	controllertest.Put(t, c.pods, second)
	for _, want := range []string{"Volume is already used by pod(s) also, on-a",
		"Volume is already exclusively attached to one node and can't be attached to another"} {
		if _, err := c.Reconcile(t.Context(), key); err != nil || len(attached(fake)) > 0 {
			t.Errorf("%v, attached to %v", err, attached(fake))
		}
		if got := <-said.Events; got != `Warning FailedAttachVolume Multi-Attach error for volume "v" `+want {
			t.Errorf("event %q, want %s", got, want)
		}
		for _, name := range []string{"on-a", "also"} { // they end
			p, _ := c.pods.Get(controller.Key{Namespace: "ns", Name: name})
			p = p.DeepCopy()
			p.Status.Phase = corev1.PodSucceeded
			controllertest.Put(t, c.pods, p)
		}
	}
	c.Events = &record.FakeRecorder{}
	if err := c.attachments.Raw().GetIndexer().Delete(at); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reconcile(t.Context(), key); err != nil || !slices.Equal(attached(fake), []string{"b"}) {
		t.Errorf("%v, attached to %v", err, attached(fake))
	}
}

// TestNotAttached: what no attacher is asked for.
func TestNotAttached(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Controller){
		"the driver needs none": func(c *Controller) {
			d := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "d"}}
			d.Spec.AttachRequired = new(false)
			controllertest.Put(t, c.drivers, d)
		},
		"of another claim": func(c *Controller) {
			v := volume()
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "c", UID: "other"}
			controllertest.Put(t, c.volumes, v)
		},
		"no driver's": func(c *Controller) {
			v := volume()
			v.Spec.CSI, v.Spec.ClaimRef = nil, &corev1.ObjectReference{Namespace: "ns", Name: "c", UID: "u"}
			controllertest.Put(t, c.volumes, v)
		},
		"pods at their end": func(c *Controller) {
			for _, p := range c.pods.List() {
				p = p.DeepCopy()
				p.Status.Phase = corev1.PodFailed
				controllertest.Put(t, c.pods, p)
			}
		},
	} {
		fake := &controllertest.Fake{}
		c := world(t, fake, corev1.ReadWriteOnce)
		change(c)
		if _, err := c.Reconcile(t.Context(), controller.Key{Name: "a"}); err != nil || len(attached(fake)) > 0 {
			t.Errorf("%s: %v, attached to %v", name, err, attached(fake))
		}
	}
}

// TestReportFirst: the node's status says that a volume is attached no more before it is detached.
func TestReportFirst(t *testing.T) {
	t.Parallel()
	fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
		return &corev1.Node{}, nil
	}}
	d := fake.Deps(t, start)
	c, err := New(d, Config{})
	if err != nil {
		t.Fatal(err)
	}
	controllertest.Put(t, c.volumes, volume())
	controllertest.Put(t, c.attachments, attachment(done)[0])
	for _, reported := range []bool{true, false} {
		controllertest.Put(t, c.nodes, node(says(reported, false)))
		if _, err := c.Reconcile(t.Context(), controller.Key{Name: "n"}); err != nil {
			t.Error(err)
		}
	}
	if got, want := strings.Join(fake.Names(), ", "),
		fmt.Sprint("PATCH /api/v1/nodes/n/status, DELETE /apis/storage.k8s.io/v1/volumeattachments/",
			attachmentName("h", "d", "n")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestNodeDeleted: a volume that the kubelet of a deleted node reported in use stays attached there, so that no second
// node writes to it, for as long as the kubelet of a lost node is waited for.
func TestNodeDeleted(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Controller){
		"in use":                            func(*Controller) {},
		"in use, deleted before this start": func(c *Controller) { c.departed.forget("a") },
	} {
		fake := &controllertest.Fake{}
		c := world(t, fake, corev1.ReadWriteOnce)
		controllertest.Put(t, c.attachments, attachment(func(a *storagev1.VolumeAttachment) {
			a.Name, a.Spec.NodeName = attachmentName("h", "d", "a"), "a"
			done(a)
		})...)
		n, _ := c.nodes.Get(controller.Key{Name: "a"})
		n = n.DeepCopy()
		says(true, true)(n)
		if err := c.nodes.Raw().GetIndexer().Delete(n); err != nil {
			t.Fatal(err)
		}
		for _, p := range c.pods.List() {
			if p.Spec.NodeName != "a" {
				continue
			}
			if err := c.pods.Raw().GetIndexer().Delete(p); err != nil {
				t.Fatal(err)
			}
		}
		c.nodeDeleted(n)
		change(c)
		for _, on := range []string{"a", "b"} {
			if _, err := c.Reconcile(t.Context(), controller.Key{Name: on}); err != nil {
				t.Fatal(err)
			}
		}
		if got := fake.Names(); len(got) > 0 {
			t.Errorf("%s: the controller sent %v, want nothing", name, got)
		}
		if err := c.attachments.Raw().GetIndexer().Delete(c.attachments.List()[0]); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Reconcile(t.Context(), controller.Key{Name: "a"}); err != nil || len(c.departed.of) > 0 {
			t.Errorf("%s: %v, remembers %v of a node without attachments", name, err, c.departed.of)
		}
	}
}
