package plugins_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/core/volumebinding"
	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins/nodevolumelimits"
	"bonsai/pkg/scheduler/plugins/volumerestrictions"
	"bonsai/pkg/scheduler/plugins/volumezone"
	"bonsai/pkg/scheduler/volumes"
)

// filter is what a plug-in says of a pod on a node; "" if it does not mind.
func filter(t *testing.T, p framework.Plugin, pod *model.PodInfo, node *model.NodeInfo) string {
	t.Helper()
	state := framework.NewCycleState()
	if _, st := p.(framework.PreFilter).PreFilter(state, pod, model.NewSnapshot(node)); st.IsSkip() {
		return ""
	} else if !st.IsSuccess() {
		return st.Message()
	}
	return p.(framework.Filter).Filter(state, pod, node).Message()
}

func podWith(list ...corev1.VolumeSource) *model.PodInfo {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	for i, s := range list {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint(i), VolumeSource: s})
	}
	return model.NewPodInfo(p)
}

func claimed(name string) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

// bound adds a claim with a volume of that name.
func bound(v *volumes.Volumes, name string, change func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume)) {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	change(c, pv)
	pv, _ = volumebinding.Bind(pv, c)
	c, _ = volumebinding.Complete(c, pv)
	v.ClaimChanged(nil, c)
	v.VolumeChanged(nil, pv)
}

func nodeWith(labels map[string]string, pods ...*model.PodInfo) *model.NodeInfo {
	return model.NewNodeInfo(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels}}, pods...)
}

func TestVolumeZone(t *testing.T) {
	t.Parallel()
	const zone, old = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
	v := volumes.New(nil)
	bound(v, "c", func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
		pv.Labels = map[string]string{zone: "a__b"}
	})
	for _, c := range []struct {
		node map[string]string
		want string
	}{
		{map[string]string{zone: "b"}, ""}, {map[string]string{old: "a"}, ""}, {map[string]string{}, ""},
		{map[string]string{zone: "c"}, volumezone.Reason},
		{map[string]string{"topology.kubernetes.io/region": "r"}, volumezone.Reason},
	} {
		if got := filter(t, volumezone.Plugin{Volumes: v}, podWith(claimed("c")), nodeWith(c.node)); got != c.want {
			t.Errorf("%v: %q, want %q", c.node, got, c.want)
		}
	}
}

// TestNodeVolumeLimits: a volume counts once, whoever uses it; drivers without a limit do not count.
func TestNodeVolumeLimits(t *testing.T) {
	t.Parallel()
	v := volumes.New(nil)
	limits := v.NodeChanged(nil, &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: "csi", Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(2))}}, {Name: "free"}}}})
	for name, driver := range map[string]string{"a": "csi", "b": "csi", "c": "csi", "x": "free", "y": "free"} {
		bound(v, name, func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
			pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}
		})
	}
	v.ClassChanged(nil, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Provisioner: "csi"})
	v.ClaimChanged(nil, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "unbound"},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("s")}})
	node := nodeWith(nil, podWith(claimed("a"), claimed("x")), podWith(claimed("a")))
	node.VolumeLimits = limits
	for want, pod := range map[string][]*model.PodInfo{
		"": {podWith(claimed("b")), podWith(claimed("a"), claimed("b")),
			podWith(claimed("x"), claimed("y")), podWith(claimed("unbound")), podWith()},
		nodevolumelimits.Reason: {podWith(claimed("b"), claimed("c")), podWith(claimed("b"), claimed("unbound"))},
	} {
		for _, p := range pod {
			if got := filter(t, nodevolumelimits.Plugin{Volumes: v}, p, node); got != want {
				t.Errorf("%v: %q, want %q", p.Claims, got, want)
			}
		}
	}
}

// TestMissingDriver: a driver that asks for it is waited for, in the words of a kube-scheduler v1.37.2.
func TestMissingDriver(t *testing.T) {
	t.Parallel()
	v := volumes.New(nil)
	for name, driver := range map[string]string{"a": "csi", "x": "free"} {
		bound(v, name, func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
			pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}
		})
	}
	v.ClassChanged(nil, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Provisioner: "csi"})
	v.ClaimChanged(nil, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "unbound"},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("s")}})
	driver := func(name string, required bool) {
		v.DriverChanged(nil, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: &required}})
	}
	driver("csi", true)
	driver("free", false)
	node := nodeWith(nil)
	const lacks = "csi CSI driver is not installed on the node"
	look := func(claim, want string) {
		t.Helper()
		if got := filter(t, nodevolumelimits.Plugin{Volumes: v}, podWith(claimed(claim)), node); got != want {
			t.Errorf("%s: %q, want %q", claim, got, want)
		}
	}
	look("a", lacks)
	look("unbound", lacks)
	look("x", "")
	node.VolumeLimits = v.NodeChanged(nil, &storagev1.CSINode{Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: "free"}}}})
	look("a", lacks)
	node.VolumeLimits = v.NodeChanged(nil, &storagev1.CSINode{Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: "csi"}}}})
	look("a", "")
	look("unbound", "")
	node.VolumeLimits = nil
	driver("csi", false)
	look("a", "")
}

// TestNodeVolumeLimitsCountAnew: a claim of a class without a provisioner turns out to be of a driver when it is bound.
// Nothing of the node of its pod changes with that, but what was found for the next pods there holds no longer.
func TestNodeVolumeLimitsCountAnew(t *testing.T) {
	t.Parallel()
	v := volumes.New(nil)
	limits := v.NodeChanged(nil,
		&storagev1.CSINode{Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{
				{Name: "csi", Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(1))}}}}})
	of := func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "csi", VolumeHandle: pv.Name}
	}
	bound(v, "b", of)
	v.ClassChanged(nil, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "s"},
		Provisioner: volumebinding.NoProvisioner})
	v.ClaimChanged(nil, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "1"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: new("s")}})
	node, next := nodeWith(nil, podWith(claimed("a"))), podWith(claimed("b"))
	node.VolumeLimits = limits
	p := nodevolumelimits.Plugin{Volumes: v}
	look := func(want string) string {
		t.Helper()
		if got := filter(t, p, next, node); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		return model.KeyOf(p.Reads)(next)
	}
	before := look("")
	bound(v, "a", func(c *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
		c.ResourceVersion = "2"
		of(c, pv)
	})
	after := look(nodevolumelimits.Reason)
	if before == after {
		t.Error("the pod is of the same class as before, whose verdicts are kept")
	}
}

// TestNodeVolumeLimitsCountAttachments: a volume that is still attached takes a slot, though no pod of the node uses it
// any more.
func TestNodeVolumeLimitsCountAttachments(t *testing.T) {
	t.Parallel()
	v := volumes.New(nil)
	limits := v.NodeChanged(nil,
		&storagev1.CSINode{Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{
				{Name: "csi", Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(1))}}}}})
	attach := func(volume, node string) *storagev1.VolumeAttachment {
		a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node},
			Spec: storagev1.VolumeAttachmentSpec{Attacher: "csi", NodeName: node}}
		if volume != "" {
			a.Spec.Source.PersistentVolumeName = &volume
		}
		return a
	}
	of := func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "csi", VolumeHandle: pv.Name}
	}
	bound(v, "a", of)
	p, pod := nodevolumelimits.Plugin{Volumes: v}, podWith(claimed("a"))
	look := func(what, want string) {
		t.Helper()
		node := nodeWith(nil)
		node.VolumeLimits = limits
		if got := filter(t, p, pod, node); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	change := func(old, now *storagev1.VolumeAttachment, want ...string) {
		t.Helper()
		if got := v.AttachmentChanged(old, now); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("nodes %v, want %v", got, want)
		}
	}
	change(nil, attach("b", "other"), "other")
	look("attached to another node", "")
	change(nil, attach("", "n"))
	look("an inline volume", "")
	own := attach("a", "n")
	change(nil, own, "n")
	change(own, own)
	look("the pod's own", "")
	change(own, nil, "n")
	left := attach("b", "n")
	change(nil, left, "n")
	look("another one, of an unknown volume", nodevolumelimits.Reason)
	before := model.KeyOf(p.Reads)(pod)
	bound(v, "b", of)
	if model.KeyOf(p.Reads)(pod) == before {
		t.Error("the pod is of the same class as before, whose verdicts are kept")
	}
	look("another one", nodevolumelimits.Reason)
	gone := clusterevent.Event{Kind: clusterevent.Attachment, Action: clusterevent.Delete, Old: left}
	for _, i := range p.EventsToRegister() {
		if i.Kind == clusterevent.Attachment && (!i.Helps(pod, gone) || i.Helps(podWith(), gone)) {
			t.Error("the end of an attachment must wake pods with volumes of its driver, and no others")
		}
	}
	change(left, nil, "n")
	look("detached", "")
}

func TestVolumeRestrictions(t *testing.T) {
	t.Parallel()
	v := volumes.New(nil)
	bound(v, "alone", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	})
	bound(v, "shared", func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {})
	gce := func(name string, readOnly bool) corev1.VolumeSource {
		return corev1.VolumeSource{
			GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: name, ReadOnly: readOnly}}
	}
	aws := func(readOnly bool) corev1.VolumeSource {
		return corev1.VolumeSource{
			AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "v", ReadOnly: readOnly}}
	}
	iscsi := func(readOnly bool) corev1.VolumeSource {
		return corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{IQN: "i", ReadOnly: readOnly}}
	}
	rbd := func(monitor string, readOnly bool) corev1.VolumeSource {
		return corev1.VolumeSource{
			RBD: &corev1.RBDVolumeSource{CephMonitors: []string{monitor, "m" + monitor}, RBDPool: "p", RBDImage: "i",
				ReadOnly: readOnly}}
	}
	for _, c := range []struct {
		name       string
		pod, other corev1.VolumeSource
		want       string
	}{
		{"one GCE disk", gce("d", false), gce("d", true), volumerestrictions.ReasonDisk},
		{"read only", gce("d", true), gce("d", true), ""},
		{"two disks", gce("d", false), gce("e", false), ""},
		{"AWS, read only", aws(true), aws(true), volumerestrictions.ReasonDisk},
		{"iSCSI", iscsi(false), iscsi(true), volumerestrictions.ReasonDisk},
		{"iSCSI, read only", iscsi(true), iscsi(true), ""},
		{"RBD", rbd("1", false), rbd("1", true), volumerestrictions.ReasonDisk},
		{"RBD of other monitors", rbd("1", false), rbd("2", false), ""},
		{"a claim for one pod", claimed("alone"), claimed("alone"), volumerestrictions.ReasonOncePod},
		{"a claim for many", claimed("shared"), claimed("shared"), ""},
	} {
		if got := filter(t, volumerestrictions.Plugin{Volumes: v}, podWith(c.pod),
			nodeWith(nil, podWith(c.other))); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	// Preemption takes the other pod away, and perhaps gives it back.
	p, state, pod, other := volumerestrictions.Plugin{Volumes: v}, framework.NewCycleState(), podWith(claimed("alone")),
		podWith(claimed("alone"))
	node := nodeWith(nil, other)
	if _, st := p.PreFilter(state, pod, model.NewSnapshot(node)); !st.IsSuccess() {
		t.Fatal(st)
	}
	dry := state.Clone()
	p.RemovePod(dry, pod, other, node)
	if st := p.Filter(dry, pod, node); !st.IsSuccess() {
		t.Error("without the other pod:", st)
	}
	p.AddPod(dry, pod, other, node)
	if p.Filter(dry, pod, node).IsSuccess() || p.Filter(state, pod, node).IsSuccess() {
		t.Error("the other pod is forgotten")
	}
}
