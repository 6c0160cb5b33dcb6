package localpath

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"bonsai/api/core/volumebinding"
	"bonsai/pkg/controller"
)

var start = time.Unix(1_000_000, 0)

const root = "/data"

func lazyClass() *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Provisioner: Provisioner,
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer), MountOptions: []string{"noexec"}}
}

func claim(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "u", ResourceVersion: "7",
			Annotations: map[string]string{volumebinding.StorageProvisioner: Provisioner,
				volumebinding.SelectedNode: "n"}}}
	c.Spec.StorageClassName = ptr.To("standard")
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	if change != nil {
		change(c)
	}
	return c
}

func node() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n",
		Labels: map[string]string{corev1.LabelHostname: "host"}}}
}

// wants is the view of a claim that wants a volume.
func wants(change func(*view)) view {
	v := view{name: "pvc-u", root: root, claim: claim(nil), class: lazyClass(), node: node(),
		nodes: map[string]string{"host": "n"}, now: start}
	if change != nil {
		change(&v)
	}
	return v
}

// has is the view of a volume.
func has(phase corev1.PersistentVolumePhase, change func(*view)) view {
	v := wants(nil)
	v.volume = v.newVolume()
	v.volume.Status.Phase, v.claim = phase, nil
	if change != nil {
		change(&v)
	}
	return v
}

func done(do verb, phase corev1.PodPhase) *helper {
	p := newHelper(key{"pvc-u", controller.Key{Namespace: "ns", Name: "c"}}, job{verb: do, node: "n", dir: "pvc-u"},
		root, "i")
	p.Status.Phase, p.CreationTimestamp = phase, metav1.NewTime(start)
	h, ok := helperOf(p)
	if !ok {
		panic("a helper is not known as one")
	}
	return &h
}

// summary is an action in short.
func summary(a action) string {
	var out []string
	switch {
	case a.start != nil:
		out = append(out, string(a.start.verb)+" "+a.start.dir+" on "+a.start.node)
		if a.start.critical {
			out = append(out, "critical")
		}
	case a.dismiss != nil:
		out = append(out, "dismiss "+string(a.dismiss.verb))
	case a.create != nil:
		out = append(out, "volume "+a.create.Spec.Local.Path)
	case a.update != nil:
		out = append(out, "let go "+strings.Join(a.update.Finalizers, " "))
	case a.delete != nil:
		out = append(out, "delete")
	case a.reschedule != nil:
		out = append(out, "reschedule")
	}
	if a.again > 0 {
		out = append(out, "again "+a.again.String())
	}
	for _, e := range a.events {
		out = append(out, e.reason)
	}
	return strings.Join(out, ", ")
}

// TestDecide: each state of a volume's life, and what is next.
func TestDecide(t *testing.T) {
	t.Parallel()
	released, deleted := corev1.VolumeReleased, ptr.To(metav1.NewTime(start))
	refused := "again 1m0s, ProvisioningFailed"
	of := func(change func(*corev1.PersistentVolumeClaim)) view {
		return wants(func(v *view) { v.claim = claim(change) })
	}
	for name, c := range map[string]struct {
		view view
		want string
	}{
		"wanted": {wants(nil), "create pvc-u on n, Provisioning"},
		"wanted, node lacks disk": {wants(func(v *view) {
			v.full = map[string]bool{"n": true}
		}), "create pvc-u on n, Provisioning"},
		"being made": {wants(func(v *view) { v.creator = done(create, corev1.PodRunning) }), ""},
		"made": {wants(func(v *view) {
			v.creator = done(create, corev1.PodSucceeded)
		}), "volume /data/pvc-u, ProvisioningSucceeded"},
		"not made": {wants(func(v *view) {
			v.creator = done(create, corev1.PodFailed)
		}), "again 10s"},
		"not made some time ago": {wants(func(v *view) {
			v.creator, v.now = done(create, corev1.PodFailed), start.Add(retry)
		}), "dismiss create, ProvisioningFailed"},
		"made on another node": {wants(func(v *view) {
			v.creator = done(create, corev1.PodSucceeded)
			v.creator.pod.Spec.NodeName = "m"
		}), "dismiss create"},
		"node gone": {wants(func(v *view) { v.node = nil }), "reschedule, ProvisioningFailed"},
		"no node yet": {of(func(c *corev1.PersistentVolumeClaim) {
			delete(c.Annotations, volumebinding.SelectedNode)
		}), ""},
		"of another provisioner": {of(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations[volumebinding.StorageProvisioner] = "x"
		}), ""},
		"class of another":   {wants(func(v *view) { v.class.Provisioner = "x" }), "again 1m0s"},
		"class gone":         {wants(func(v *view) { v.class = nil }), "again 1m0s"},
		"leaving claim":      {of(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = deleted }), ""},
		"claim has a volume": {of(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" }), ""},
		"immediate":          {wants(func(v *view) { v.class.VolumeBindingMode = nil }), refused},
		"block device": {of(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
		}), refused},
		"for many nodes": {of(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes[0] = corev1.ReadWriteMany
		}), refused},
		"with a selector": {of(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{}
		}), refused},
		"from a source": {of(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{}
		}), refused},
		"claim went, being made": {wants(func(v *view) {
			v.claim, v.creator = nil, done(create, corev1.PodPending)
		}), ""},
		"claim went, made": {wants(func(v *view) {
			v.claim, v.creator = nil, done(create, corev1.PodSucceeded)
		}), "remove pvc-u on n"},
		"claim has another, made": {wants(func(v *view) {
			v.claim.Spec.VolumeName, v.creator = "v", done(create, corev1.PodSucceeded)
		}), "remove pvc-u on n"},
		"claim is being bound, made": {wants(func(v *view) {
			v.claim.Spec.VolumeName, v.creator = "pvc-u", done(create, corev1.PodSucceeded)
		}), ""},
		"claim went, removed": {wants(func(v *view) {
			v.claim, v.creator, v.remover = nil, done(create, corev1.PodSucceeded), done(remove, corev1.PodSucceeded)
		}), "dismiss create"},
		"claim went, tidied": {wants(func(v *view) {
			v.claim, v.remover = nil, done(remove, corev1.PodSucceeded)
		}), "dismiss remove"},
		"bound": {has(corev1.VolumeBound, nil), ""},
		"bound, helper there": {has(corev1.VolumeBound, func(v *view) {
			v.creator = done(create, corev1.PodSucceeded)
		}), "dismiss create"},
		"bound, being deleted": {has(corev1.VolumeBound, func(v *view) {
			v.volume.DeletionTimestamp = deleted
		}), ""},
		"new":      {has(corev1.VolumePending, nil), ""},
		"released": {has(released, nil), "remove pvc-u on n"},
		"released, node lacks disk": {has(released, func(v *view) {
			v.full = map[string]bool{"n": true}
		}), "remove pvc-u on n, critical"},
		"released, another node lacks disk": {has(released, func(v *view) {
			v.full = map[string]bool{"m": true, "n": false}
		}), "remove pvc-u on n"},
		"released, being removed": {has(released, func(v *view) { v.remover = done(remove, corev1.PodRunning) }), ""},
		"released, removed": {has(released, func(v *view) {
			v.remover = done(remove, corev1.PodSucceeded)
		}), "delete"},
		"released, not removed": {has(released, func(v *view) {
			v.remover, v.now = done(remove, corev1.PodFailed), start.Add(retry)
		}), "dismiss remove, VolumeFailedDelete"},
		"released, node gone": {has(released, func(v *view) { v.nodes = nil }), "delete"},
		"removed, being deleted": {has(released, func(v *view) {
			v.remover = done(remove, corev1.PodSucceeded)
			v.volume.DeletionTimestamp = deleted
		}), "let go "},
		"let go": {has(released, func(v *view) {
			v.remover = done(remove, corev1.PodSucceeded)
			v.volume.DeletionTimestamp = deleted
			v.volume.Finalizers = nil
		}), ""},
		"released, retained": {has(released, func(v *view) {
			v.volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}), ""},
		"retained, deleted": {has(released, func(v *view) {
			v.volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			v.volume.DeletionTimestamp = deleted
		}), "let go "},
		"available, deleted": {has(corev1.VolumeAvailable, func(v *view) {
			v.volume.DeletionTimestamp = deleted
		}), "remove pvc-u on n"},
		"elsewhere on the node": {has(released, func(v *view) {
			v.volume.Spec.Local.Path = "/etc"
		}), "again 1m0s, VolumeFailedDelete"},
		"above the root": {has(released, func(v *view) {
			v.volume.Spec.Local.Path = "/data/.."
		}), "again 1m0s, VolumeFailedDelete"},
		"another's directory": {has(released, func(v *view) {
			v.volume.Spec.Local.Path = "/data/pvc-x"
		}), "again 1m0s, VolumeFailedDelete"},
		"on any node": {has(released, func(v *view) {
			v.volume.Spec.NodeAffinity = nil
		}), "again 1m0s, VolumeFailedDelete"},
	} {
		if got := summary(decide(c.view)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestVolume: what the claim asks for, tied to the node, and kept until its directory is gone.
func TestVolume(t *testing.T) {
	t.Parallel()
	v := has("", nil).volume
	term := v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
	if v.Name != "pvc-u" || v.Annotations[volumebinding.ProvisionedBy] != Provisioner ||
		!slices.Equal(v.Finalizers, []string{finalizer}) ||
		v.Spec.StorageClassName != "standard" ||
		v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || v.Spec.ClaimRef.UID != "u" ||
		term.Key != corev1.LabelHostname || !slices.Equal(term.Values, []string{"host"}) ||
		!slices.Equal(v.Spec.MountOptions, []string{"noexec"}) {
		t.Errorf("%+v", v)
	}
}

// TestHelper: what runs on the node has no right that it does not need.
func TestHelper(t *testing.T) {
	t.Parallel()
	p := done(remove, corev1.PodRunning).pod
	c := p.Spec.Containers[0]
	if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
		!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || s.Privileged != nil {
		t.Errorf("%+v", s)
	}
	if *p.Spec.AutomountServiceAccountToken || p.Spec.HostNetwork || p.Spec.HostPID || len(p.Spec.Volumes) != 1 ||
		p.Spec.Volumes[0].HostPath.Path != root {
		t.Errorf("%+v", p.Spec)
	}
	for _, critical := range []bool{false, true} {
		want := map[bool]string{true: "system-node-critical"}[critical]
		h := newHelper(key{volume: "pvc-u"}, job{verb: remove, node: "n", dir: "pvc-u", critical: critical}, root, "i")
		if h.Spec.PriorityClassName != want {
			t.Errorf("critical %v: the priority class %q, not %q", critical, h.Spec.PriorityClassName, want)
		}
	}
	if strings.Contains(strings.Join(c.Command, " "), "pvc-u") {
		t.Errorf("the shell reads the directory's name: %q", c.Command)
	}
	for _, change := range []func(*corev1.Pod){
		func(p *corev1.Pod) { p.Namespace = "default" }, func(p *corev1.Pod) {
			p.Labels = nil
		}, func(p *corev1.Pod) { p.Spec.Containers = nil },
	} {
		other := p.DeepCopy()
		change(other)
		if _, ok := helperOf(other); ok {
			t.Errorf("taken for a helper: %+v", other)
		}
	}
}
