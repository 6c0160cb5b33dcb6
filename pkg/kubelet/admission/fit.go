package admission

import (
	"fmt"
	goruntime "runtime"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"bonsai/api/podspec"
	"bonsai/api/quantity"
)

// claim is what a pod takes from the node.
type claim struct {
	// amounts are its requests: CPU in thousandths, everything else in units; one of "pods" among them.
	amounts map[corev1.ResourceName]int64
	ports   []hostPort
}

// hostPort is a port of the node, on one of its addresses or, with "", on all.
type hostPort struct {
	protocol corev1.Protocol
	port     int32
	ip       string
}

// claimOf returns what a pod takes from the node: its requests with overhead, one pod, and its host ports.
func claimOf(pod *corev1.Pod) claim {
	c := claim{amounts: amounts(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))}
	c.amounts[corev1.ResourcePods] = 1
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		for _, m := range s.RequestMappings {
			// devices that were claimed for the pod, not the node's own
			delete(c.amounts, corev1.ResourceName(m.ResourceName))
		}
	}
	ports := func(ct *corev1.Container) {
		for _, p := range ct.Ports {
			if p.HostPort > 0 {
				h := hostPort{p.Protocol, p.HostPort, p.HostIP}
				if h.ip == "0.0.0.0" || h.ip == "::" {
					h.ip = ""
				}
				c.ports = append(c.ports, h)
			}
		}
	}
	for i := range pod.Spec.InitContainers {
		// The ports of an init container that ends are free when the others begin.
		if ct := &pod.Spec.InitContainers[i]; podspec.IsSidecar(ct) {
			ports(ct)
		}
	}
	for i := range pod.Spec.Containers {
		ports(&pod.Spec.Containers[i])
	}
	return c
}

func amounts(l corev1.ResourceList) map[corev1.ResourceName]int64 {
	out := map[corev1.ResourceName]int64{}
	for name, q := range l {
		if out[name] = q.Value(); name == corev1.ResourceCPU {
			out[name] = q.MilliValue()
		}
	}
	return out
}

// lack is a resource that the node has too little of for a pod.
type lack struct {
	name                      corev1.ResourceName
	requested, used, capacity int64
}

// missing returns how much more would have to be free.
func (l lack) missing() int64 { return l.requested + l.used - l.capacity }

func (l lack) rejection() *Rejection {
	return &Rejection{Reason: "OutOf" + string(l.name), Message: "Node didn't have enough resource: " + l.String()}
}

// String returns upstream's words for it.
func (l lack) String() string {
	return fmt.Sprintf("%s, requested: %d, used: %d, capacity: %d", l.name, l.requested, l.used, l.capacity)
}

// lacks lists what is missing for the claim besides the others: room for one more pod first, then by name. The first
// one becomes the reason that users see.
func (c claim) lacks(allocatable corev1.ResourceList, others []claim) []lack {
	capacity := amounts(allocatable)
	var out []lack
	for name, requested := range c.amounts {
		l := lack{name: name, requested: requested, capacity: capacity[name]}
		for _, o := range others {
			l.used += o.amounts[name]
		}
		if name == corev1.ResourcePods && l.capacity == 0 {
			continue // the node tells no limit
		}
		if _, known := capacity[name]; !known && quantity.IsExtended(name) {
			continue // an extender of the scheduler counts it
		}
		if requested > 0 && requested+l.used > l.capacity {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b lack) int {
		switch {
		case a.name == b.name:
			return 0
		case a.name == corev1.ResourcePods || b.name != corev1.ResourcePods && a.name < b.name:
			return -1
		}
		return 1
	})
	return out
}

// unsupported tells what of a pod this node never does, whatever room it has; nil if there is nothing. sysctls tells
// why the pod may not set its kernel parameters; node is nil where it is not known.
func unsupported(pod *corev1.Pod, node *corev1.Node, sysctls func(*corev1.Pod) error) *Rejection {
	if os := pod.Spec.OS; os != nil && string(os.Name) != goruntime.GOOS {
		return &Rejection{Reason: "PodOSNotSupported",
			Message: "Failed to admit pod as the OS field doesn't match node OS"}
	}
	if err := sysctls(pod); err != nil {
		return &Rejection{Reason: "SysctlForbidden", Message: "forbidden sysctl: " + err.Error()}
	}
	if sc := pod.Spec.SecurityContext; sc != nil && sc.SupplementalGroupsPolicy != nil &&
		*sc.SupplementalGroupsPolicy == corev1.SupplementalGroupsPolicyStrict && node != nil {
		if f := node.Status.Features; f == nil || f.SupplementalGroupsPolicy == nil || !*f.SupplementalGroupsPolicy {
			return &Rejection{Reason: "SupplementalGroupsPolicyNotSupported",
				Message: "SupplementalGroupsPolicy=Strict is not supported in this node"}
		}
	}
	return nil
}

// unconfined returns why a pod's containers cannot be confined by AppArmor as it asks, nil if they can.
func unconfined(pod *corev1.Pod, appArmor func(*corev1.Pod) error) *Rejection {
	if err := appArmor(pod); err != nil {
		return &Rejection{Reason: "AppArmor", Message: err.Error()}
	}
	return nil
}

// unfit returns why a pod that has enough resources still cannot run here, nil if it can. An unknown node has no labels
// and no taints to check.
func unfit(pod *corev1.Pod, node *corev1.Node, c claim, others []claim) *Rejection {
	predicate := func(name, why string) *Rejection {
		return &Rejection{Reason: name, Message: fmt.Sprintf("Predicate %s failed: %s", name, why)}
	}
	if node != nil {
		if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !ok {
			return predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
		}
		if _, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints,
			pod.Spec.Tolerations, func(t *corev1.Taint) bool {
				return t.Effect == corev1.TaintEffectNoExecute
			}, false); untolerated {
			return predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
		}
	}
	if slices.ContainsFunc(others, c.conflicts) {
		return predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
	}
	return nil
}

// conflicts reports whether both want the same port of the node.
func (c claim) conflicts(o claim) bool {
	for _, a := range c.ports {
		for _, b := range o.ports {
			if a.protocol == b.protocol && a.port == b.port && (a.ip == b.ip || a.ip == "" || b.ip == "") {
				return true
			}
		}
	}
	return false
}
