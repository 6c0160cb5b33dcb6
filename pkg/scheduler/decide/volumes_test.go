package decide

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/core/volumebinding"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/volumes"
)

// storage are the claims and volumes of a history.
type storage struct {
	known   *volumes.Volumes
	claims  map[string]*corev1.PersistentVolumeClaim // by namespace/name
	volumes []*corev1.PersistentVolume
	limits  map[string]*storagev1.CSINode
	version int
	// bound are volumes that claims have, or had; attachments are of some of them.
	bound       []*corev1.PersistentVolume
	attachments []*storagev1.VolumeAttachment
}

// next is a new resource version.
func (s *storage) next() string { s.version++; return strconv.Itoa(s.version) }

// The classes: volumes are provisioned anywhere, in one zone, where the driver has room, found among free ones, or
// bound at once.
func (h *history) addStorage() {
	h.storage = storage{known: volumes.New(nil), claims: map[string]*corev1.PersistentVolumeClaim{},
		limits: map[string]*storagev1.CSINode{}}
	later, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	class := func(name, provisioner string, mode *storagev1.VolumeBindingMode, zones ...string) {
		c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner,
			VolumeBindingMode: mode}
		if len(zones) > 0 {
			c.AllowedTopologies = []corev1.TopologySelectorTerm{
				{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
					{Key: "topology.kubernetes.io/zone", Values: zones}}}}
		}
		h.storage.known.ClassChanged(nil, c)
	}
	class("anywhere", "csi", &later)
	class("zone", "csi", &later, "z1", "z2")
	class("room", "tracked", &later)
	class("local", volumebinding.NoProvisioner, &later)
	class("now", "csi", &now)
	h.storage.known.DriverChanged(nil,
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "tracked"},
			Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}})
	for i, zone := range []string{"z1", "z2", "z3"} {
		size := resource.MustParse(strconv.Itoa(i+1) + "Gi")
		h.storage.known.CapacityChanged(nil,
			&storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "csi", Name: zone},
				StorageClassName: "room",
				NodeTopology: &metav1.LabelSelector{
					MatchLabels: map[string]string{"topology.kubernetes.io/zone": zone}},
				Capacity: &size})
	}
}

// claim makes a claim, bound or not, or names one that is there, or none.
func (h *history) claim(namespace string) string {
	s := &h.storage
	if h.chance(10) {
		for key, c := range s.claims {
			if c.Namespace == namespace && h.chance(50) {
				return c.Name
			}
			_ = key
		}
	}
	h.next++
	name := fmt.Sprint("c", h.next)
	if h.chance(3) {
		return name
	}
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name),
			ResourceVersion: s.next()}}
	c.Spec.StorageClassName = new(h.one("anywhere", "anywhere", "zone", "room", "local", "now"))
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	if h.chance(10) {
		c.Spec.AccessModes[0] = corev1.ReadWriteOncePod
	}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(h.one("1Gi", "2Gi"))}
	c.Status.Phase = corev1.ClaimPending
	if h.chance(50) || *c.Spec.StorageClassName == "now" && h.chance(80) {
		h.bind(c)
	}
	s.claims[namespace+"/"+name] = c
	s.known.ClaimChanged(nil, c)
	return name
}

// volume makes a volume that some nodes can use.
func (h *history) volume(class string) *corev1.PersistentVolume {
	h.next++
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("v", h.next), UID: types.UID(fmt.Sprint("v", h.next)),
			ResourceVersion: h.storage.next()}}
	v.Spec.StorageClassName = class
	v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(h.one("1Gi", "3Gi"))}
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod}
	v.Status.Phase = corev1.VolumeAvailable
	only := func(key string, values ...string) {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{
			Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}}}}
	}
	switch h.r.IntN(4) {
	case 0:
		only("topology.kubernetes.io/zone", h.one("z1", "z2", "z3"))
	case 1:
		v.Labels = map[string]string{"topology.kubernetes.io/zone": h.one("z1", "z2__z3")}
	case 2:
		if len(h.nodes) > 0 {
			only("kubernetes.io/hostname", h.one(h.nodes...), h.one(h.nodes...))
		}
	}
	return v
}

// bind gives a claim a volume of its own, which may be gone.
func (h *history) bind(c *corev1.PersistentVolumeClaim) {
	v := h.volume(*c.Spec.StorageClassName)
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: h.one("csi", "other"), VolumeHandle: v.Name}
	v, _ = volumebinding.Bind(v, c)
	done, _ := volumebinding.Complete(c, v)
	*c = *done
	h.storage.bound = append(h.storage.bound, v)
	if !h.chance(3) {
		h.storage.known.VolumeChanged(nil, v)
	}
}

// stepStorage changes something that claims depend on.
func (h *history) stepStorage() {
	s := &h.storage
	switch h.r.IntN(13) {
	case 0, 1:
		v := h.volume("local")
		s.volumes = append(s.volumes, v)
		s.known.VolumeChanged(nil, v)
	case 2:
		if len(s.volumes) > 0 {
			i := h.r.IntN(len(s.volumes))
			s.known.VolumeChanged(s.volumes[i], nil)
			s.volumes = slices.Delete(s.volumes, i, i+1)
		}
	case 3, 4:
		name := h.one(h.nodes...)
		n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
				{Name: "csi", Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(1 + h.r.IntN(2)))}}}}}
		if h.chance(70) {
			n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: "other"})
		}
		if h.chance(30) {
			n = nil
		}
		if old := s.limits[name]; old != nil || n != nil {
			h.cache.SetVolumeLimits(name, s.known.NodeChanged(old, n))
			s.limits[name] = n
		}
	case 5:
		for key, c := range s.claims {
			if h.chance(5) {
				s.known.ClaimChanged(c, nil)
				delete(s.claims, key)
			}
		}
	case 7, 8:
		h.stepAttachment()
	case 9:
		s.known.DriverChanged(nil, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: h.one("csi", "other")},
			Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: new(h.chance(50))}})
	case 6:
		size := resource.MustParse(h.one("1Gi", "2Gi"))
		s.known.CapacityChanged(nil,
			&storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "csi", Name: "z3"},
				StorageClassName: "room",
				NodeTopology: &metav1.LabelSelector{
					MatchLabels: map[string]string{"topology.kubernetes.io/zone": h.one("z1", "z3")}}, Capacity: &size})
	}
}

// stepAttachment attaches a volume to a node, or detaches one.
func (h *history) stepAttachment() {
	s := &h.storage
	var touched []string
	switch {
	case len(s.attachments) > 0 && h.chance(40):
		i := h.r.IntN(len(s.attachments))
		touched = s.known.AttachmentChanged(s.attachments[i], nil)
		s.attachments = slices.Delete(s.attachments, i, i+1)
	case len(s.bound) > 0:
		v := s.bound[h.r.IntN(len(s.bound))]
		a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a" + s.next()},
			Spec: storagev1.VolumeAttachmentSpec{Attacher: v.Spec.CSI.Driver, NodeName: h.one(h.nodes...),
				Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &v.Name}}}
		s.attachments = append(s.attachments, a)
		touched = s.known.AttachmentChanged(nil, a)
	}
	for _, name := range touched {
		h.cache.Touch(name)
	}
}

// object is a node as the cache has it, nil if it is gone.
func (h *history) object(name string) *corev1.Node {
	if n := h.snapshot.Get(name); n != nil {
		return n.Node
	}
	return nil
}

// take has the plug-ins take what the pod gets on its node, and sometimes give it back.
func (h *history) take(p *profile.Profile, pod *model.PodInfo, node string) error {
	state := framework.NewCycleState()
	if st := p.RunReserve(context.Background(), state, pod, node); !st.IsSuccess() {
		return fmt.Errorf("a node that was chosen is refused when it is taken: %w", st.AsError())
	}
	if h.chance(20) {
		p.RunUnreserve(context.Background(), state, pod, node)
		h.cache.Touch(node) // as forgetting the pod does
		return h.gear.check()
	}
	if err := h.gear.take(p, state, pod, node); err != nil {
		return err
	}
	for _, pc := range pod.Claims {
		c := h.storage.claims[pod.Pod.Namespace+"/"+pc.Name]
		if _, done := c.Annotations[volumebinding.BindCompleted]; !done && h.chance(50) {
			h.provision(c, node)
		}
	}
	return nil
}

// provision gives a claim a volume that only a node can use: the claim's volume is there first, and bound sooner or
// later.
func (h *history) provision(c *corev1.PersistentVolumeClaim, node string) {
	v := h.volume(*c.Spec.StorageClassName)
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{
		Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}
	v, _ = volumebinding.Bind(v, c)
	h.storage.known.VolumeChanged(nil, v)
	if h.chance(50) {
		return
	}
	done, _ := volumebinding.Complete(c, v)
	done.ResourceVersion = h.storage.next()
	h.storage.claims[c.Namespace+"/"+c.Name] = done
	h.storage.known.ClaimChanged(c, done)
}

// plainly reports whether only the plain way has the answer for a pod: it is refused as a whole, or a slow plug-in
// concerns it.
func (h *history) plainly(pod *model.PodInfo) bool {
	if len(pod.Disks) > 0 {
		return true
	}
	for _, pc := range pod.Claims {
		if c := h.storage.claims[pod.Pod.Namespace+"/"+pc.Name]; c == nil ||
			c.Spec.AccessModes[0] == corev1.ReadWriteOncePod {
			return true
		}
	}
	_, st := h.storage.known.Needs(pod)
	_, devices := h.gear.known.Needs(pod)
	return !st.IsSuccess() || !devices.IsSuccess()
}
