package devices

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"bonsai/pkg/scheduler/model"
)

// Extended resources of pods may be given by devices: a class names one (spec.extendedResourceName), and each has one
// without saying so (deviceclass.resource.kubernetes.io/ and its name). On nodes that have no such resource of their
// own, the scheduler makes a claim for the pod, and tells the kubelet in the pod's status which of its requests are
// whose (KEP-5004).

// specialName is what the claim is called in messages before it is made.
const specialName = "<extended-resources>"

// ask is an extended resource that a pod asks for and that devices of a class can give.
type ask struct {
	resource corev1.ResourceName
	class    string
}

// MayAsk reports whether a pod asks for resources that devices of a class may provide.
func MayAsk(pod *model.PodInfo) bool {
	for name, n := range pod.Requests.Scalar {
		if n > 0 && strings.Contains(string(name), "/") {
			return true
		}
	}
	return false
}

// resourcesOf are the extended resources that devices of a class give.
func resourcesOf(c *resourcev1.DeviceClass) []corev1.ResourceName {
	out := []corev1.ResourceName{corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix + c.Name)}
	if name := c.Spec.ExtendedResourceName; name != nil {
		out = append(out, corev1.ResourceName(*name))
	}
	return out
}

// Gives reports whether a class gives a resource.
func Gives(c *resourcev1.DeviceClass, name corev1.ResourceName) bool {
	return slices.Contains(resourcesOf(c), name)
}

// GivenByClass reports whether there is a class that gives a resource.
func (d *Devices) GivenByClass(name corev1.ResourceName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.classes.giving[name]) > 0
}

// askedOn are those that the node does not have itself, from a device plug-in.
func askedOn(node *corev1.Node, asks []ask) []ask {
	return slices.DeleteFunc(slices.Clone(asks), func(a ask) bool {
		has := node.Status.Allocatable[a.resource]
		return has.Value() > 0
	})
}

// special is the claim for what devices are to give a pod, and which of its requests are whose. Containers that run on
// have devices of their own; an init container uses those of containers that start after it, and what is missing is
// asked for once, for the init container that lacks most.
func special(pod *corev1.Pod, asks []ask) (*resourcev1.ResourceClaim, []corev1.ContainerExtendedResourceRequest) {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: specialName,
		Annotations: map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"},
		Finalizers:  []string{resourcev1.Finalizer},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true)}},
	}}
	var mappings []corev1.ContainerExtendedResourceRequest
	all := containersOf(pod)
	for _, a := range asks {
		request := func(i int, n int64) {
			c.Spec.Devices.Requests = append(c.Spec.Devices.Requests,
				resourcev1.DeviceRequest{Name: requestName(i, all[i], a.resource),
					Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: a.class,
						AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: n}})
		}
		uses := func(user, of int) {
			mappings = append(mappings,
				corev1.ContainerExtendedResourceRequest{ContainerName: all[user].Name, ResourceName: string(a.resource),
					RequestName: requestName(of, all[of], a.resource)})
		}
		extra, owner := int64(0), -1
		for i := range all {
			n := all[i].asks(a.resource)
			if all[i].lasts && n > 0 {
				request(i, n)
				uses(i, i)
			}
			if missing := n - later(all, i, a.resource); !all[i].lasts && missing > extra {
				extra, owner = missing, i
			}
		}
		if owner >= 0 {
			request(owner, extra)
		}
		for i := range all {
			if all[i].lasts {
				continue
			}
			n := all[i].asks(a.resource)
			for k := i + 1; k < len(all) && n > 0; k++ {
				if has := all[k].asks(a.resource); all[k].lasts && has > 0 {
					uses(i, k)
					n -= has
				}
			}
			if n > 0 {
				uses(i, owner)
			}
		}
	}
	slices.SortFunc(c.Spec.Devices.Requests, func(a, b resourcev1.DeviceRequest) int {
		return strings.Compare(a.Name, b.Name)
	})
	return c, mappings
}

// running is a container, and whether it runs on while later ones do: all but init containers that end.
type running struct {
	*corev1.Container
	lasts bool
}

// containersOf are a pod's containers in the order of their start.
func containersOf(pod *corev1.Pod) []running {
	out := make([]running, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		out = append(out, running{c, ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways})
	}
	for i := range pod.Spec.Containers {
		out = append(out, running{&pod.Spec.Containers[i], true})
	}
	return out
}

func (r running) asks(name corev1.ResourceName) int64 {
	q := r.Resources.Requests[name]
	return q.Value()
}

// later is what containers that run on and start after a container ask for.
func later(all []running, i int, name corev1.ResourceName) (n int64) {
	for _, r := range all[i+1:] {
		if r.lasts {
			n += r.asks(name)
		}
	}
	return n
}

// requestName names a container's request for a resource by their places, the resource's being among all that the
// container asks for.
func requestName(i int, r running, name corev1.ResourceName) string {
	names := slices.Sorted(maps.Keys(r.Resources.Requests))
	return fmt.Sprintf("container-%d-request-%d", i, slices.Index(names, name))
}

// askKey writes down what special reads of the pod.
func askKey(pod *corev1.Pod, asks []ask, k *model.Key) {
	k.Num(int64(len(asks)))
	if len(asks) == 0 {
		return
	}
	for _, a := range asks {
		k.Str(string(a.resource), a.class)
	}
	all := containersOf(pod)
	k.Num(int64(len(all)))
	for _, r := range all {
		k.Bool(r.lasts)
		for _, a := range asks {
			k.Num(r.asks(a.resource))
		}
	}
}
