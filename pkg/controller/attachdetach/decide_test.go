package attachdetach

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var start = time.Unix(1_000_000, 0)

const unique = corev1.UniqueVolumeName("kubernetes.io/csi/d^h")

func node(change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n",
		Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if change != nil {
		change(n)
	}
	return n
}

func says(attached, inUse bool) func(*corev1.Node) {
	return func(n *corev1.Node) {
		if attached {
			n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: unique}}
		}
		if inUse {
			n.Status.VolumesInUse = []corev1.UniqueVolumeName{unique}
		}
	}
}

func lost(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

func volume() *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}
	return v
}

func attachment(change func(*storagev1.VolumeAttachment)) []*storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: attachmentName("h", "d", "n")}}
	a.Spec = storagev1.VolumeAttachmentSpec{Attacher: "d", NodeName: "n",
		Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("v")}}
	if change != nil {
		change(a)
	}
	return []*storagev1.VolumeAttachment{a}
}

func done(a *storagev1.VolumeAttachment) { a.Status.Attached = true }

func summary(p plan) string {
	var out []string
	for _, a := range p.attach {
		out = append(out, "attach "+*a.Spec.Source.PersistentVolumeName)
	}
	for range p.detach {
		out = append(out, "detach")
	}
	if p.report != nil {
		out = append(out, fmt.Sprint("report ", len(*p.report)))
	}
	for _, e := range p.events {
		out = append(out, e.reason)
	}
	if p.again > 0 {
		out = append(out, "again "+p.again.String())
	}
	return strings.Join(out, ", ")
}

// TestDecide: a volume's way to the node and from it.
func TestDecide(t *testing.T) {
	t.Parallel()
	used := []use{{volume: volume(), pods: []*corev1.Pod{{}}}}
	inUse := &departed{inUse: []corev1.UniqueVolumeName{unique}}
	out := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService}} }
	both := func(f ...func(*corev1.Node)) *corev1.Node {
		return node(func(n *corev1.Node) {
			for _, change := range f {
				change(n)
			}
		})
	}
	for name, c := range map[string]struct {
		node     *corev1.Node
		wanted   []use
		attached []*storagev1.VolumeAttachment
		left     *departed     // what a node that is gone reported last
		waited   time.Duration // since it was first not wanted
		unknown  bool          // what the volume is
		keep     bool          // without force
		want     string
	}{
		"wanted":         {node: node(nil), wanted: used, want: "attach v"},
		"being attached": {node: node(nil), wanted: used, attached: attachment(nil), want: ""},
		"attached": {node: node(nil), wanted: used, attached: attachment(done),
			want: "report 1, SuccessfulAttachVolume"},
		"reported": {node: node(says(true, false)), wanted: used, attached: attachment(done),
			want: ""},
		"failed": {node: node(nil), wanted: used, attached: attachment(func(a *storagev1.VolumeAttachment) {
			a.Status.AttachError = &storagev1.VolumeError{Message: "m"}
		}), want: "FailedAttachVolume"},
		"on another node": {node: node(nil),
			wanted: []use{{volume: volume(), pods: []*corev1.Pod{{}}, elsewhere: []string{"m"}}},
			want:   "FailedAttachVolume, again 2m0s"},
		"attached and on another node": {node: node(says(true, true)),
			wanted: []use{{volume: volume(), elsewhere: []string{"m"}}}, attached: attachment(done), want: ""},
		"being detached": {node: node(says(true, false)), wanted: used,
			attached: attachment(func(a *storagev1.VolumeAttachment) {
				done(a)
				a.DeletionTimestamp = ptr.To(metav1.Unix(1, 0))
			}), want: "report 0"},
		"kubelet attaches": {node: node(func(n *corev1.Node) {
			n.Annotations = nil
		}), wanted: used, want: ""},
		"not wanted, in use": {node: node(says(true, true)), attached: attachment(done), want: ""},
		"not wanted, in use, long": {node: node(says(true, true)), attached: attachment(done), waited: time.Hour,
			want: ""},
		"not wanted, not in use":     {node: node(says(true, false)), attached: attachment(done), want: "report 0"},
		"not wanted, not reported":   {node: node(nil), attached: attachment(done), want: "detach"},
		"not wanted, never attached": {node: node(nil), attached: attachment(nil), want: "detach"},
		"node gone, nothing in use":  {left: &departed{}, attached: attachment(done), want: "detach"},
		"node gone, in use":          {left: inUse, attached: attachment(done), want: "again 6m0s"},
		"node gone, in use for long": {left: inUse, attached: attachment(done), waited: patience, want: "detach"},
		"node gone, in use, never told": {left: inUse, attached: attachment(done), waited: time.Hour, keep: true,
			want: ""},
		"node gone, out of service": {left: &departed{inUse: inUse.inUse, outOfService: true},
			attached: attachment(done), keep: true, want: "detach"},
		"node gone, never seen":        {attached: attachment(done), want: "again 6m0s"},
		"node and volume gone, in use": {left: inUse, attached: attachment(done), unknown: true, want: "again 6m0s"},
		"node and volume gone":         {left: &departed{}, attached: attachment(done), unknown: true, want: "detach"},
		"node lost, in use": {node: both(says(true, true), lost), attached: attachment(done),
			want: "again 6m0s"},
		"node lost, in use, for long": {node: both(says(true, true), lost), attached: attachment(done),
			waited: patience, want: "detach, report 0"},
		"node lost, in use, never told": {node: both(says(true, true), lost), attached: attachment(done),
			waited: time.Hour, keep: true, want: ""},
		"out of service": {node: both(says(true, true), lost, out), attached: attachment(done),
			keep: true, want: "detach, report 0"},
		"out of service, but ready": {node: both(says(true, true), out), attached: attachment(done), want: ""},
		"volume gone": {node: node(says(true, false)), attached: attachment(done), unknown: true,
			want: "detach, report 0"},
		"somebody else's": {node: node(nil), attached: attachment(func(a *storagev1.VolumeAttachment) {
			a.Name = "mine"
		}), want: ""},
		"somebody else's, volume gone": {node: node(nil), attached: attachment(func(a *storagev1.VolumeAttachment) {
			a.Name = "mine"
		}), unknown: true, want: ""},
	} {
		w := &waits{since: map[string]time.Time{attachmentName("h", "d", "n"): start.Add(-c.waited)}}
		handle := func(*storagev1.VolumeAttachment) (string, bool) { return "h", !c.unknown }
		s := state{name: "n", node: c.node, wanted: c.wanted, attachments: c.attached, handle: handle, now: start,
			force: !c.keep, waits: w, left: c.left}
		if got := summary(decide(s)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
