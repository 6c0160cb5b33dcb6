package kubelet

import (
	"fmt"
	goruntime "runtime"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"bonsai/pkg/kubelet/config"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/sysctl"
)

// admit decides once whether the node takes a pod. A pod that runs already was admitted before.
func (k *Kubelet) admit(pod *corev1.Pod, st *podState, rt *runtime.PodStatus) bool {
	if st.admitted || st.rejected != nil {
		return st.rejected == nil
	}
	if len(rt.Sandboxes) == 0 {
		st.rejected = unsupported(pod, k.cfg.Sysctls)
	}
	if st.rejected == nil && len(rt.Sandboxes) == 0 && !config.IsStatic(pod) {
		others := slices.DeleteFunc(k.active(), func(p *corev1.Pod) bool { return p.UID == pod.UID || !k.isAdmitted(p) })
		st.rejected = reject(pod, k.node.Object(), others)
	}
	if st.rejected != nil {
		k.podEvent(pod, corev1.EventTypeWarning, st.rejected.Reason, st.rejected.Message)
		return false
	}
	k.mu.Lock()
	st.admitted = true
	k.mu.Unlock()
	if err := k.cgroups.UpdateQoS(k.active()); err != nil {
		k.log.Warn("cgroups of the service classes not updated", "err", err)
	}
	return true
}

func (k *Kubelet) isAdmitted(p *corev1.Pod) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	st := k.states[p.UID]
	return st != nil && st.admitted
}

// unsupported tells what of a pod this node never does, whatever room it has; nil if there is nothing. It is pure.
func unsupported(pod *corev1.Pod, sysctls *sysctl.Allowed) *rejection {
	if os := pod.Spec.OS; os != nil && string(os.Name) != goruntime.GOOS {
		return &rejection{Reason: "PodOSNotSupported", Message: "Failed to admit pod as the OS field doesn't match node OS"}
	}
	if err := sysctls.Check(pod); err != nil {
		return &rejection{Reason: "SysctlForbidden", Message: "forbidden sysctl: " + err.Error()}
	}
	return nil
}

// reject tells why a node cannot take a pod beside the others, nil if it can. It is pure; a node that is not known takes all.
func reject(pod *corev1.Pod, node *corev1.Node, others []*corev1.Pod) *rejection {
	if node == nil {
		return nil
	}
	if r := lacking(pod, node, others); r != nil {
		return r
	}
	predicate := func(name string) *rejection {
		return &rejection{Reason: name, Message: fmt.Sprintf("Pod was rejected: Predicate %s failed", name)}
	}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !ok {
		return predicate("NodeAffinity")
	}
	if _, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(noLogger(), node.Spec.Taints, pod.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoExecute
	}, false); untolerated {
		return predicate("TaintToleration")
	}
	if portsConflict(pod, others) {
		return predicate("NodePorts")
	}
	return nil
}

// lacking tells which resource the node has too little of.
func lacking(pod *corev1.Pod, node *corev1.Node, others []*corev1.Pod) *rejection {
	no := func(name corev1.ResourceName, requested, used, capacity int64) *rejection {
		return &rejection{Reason: "OutOf" + string(name), Message: fmt.Sprintf(
			"Pod was rejected: Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, requested, used, capacity)}
	}
	if c := node.Status.Allocatable.Pods().Value(); c > 0 && int64(len(others))+1 > c {
		return no(corev1.ResourcePods, 1, int64(len(others)), c)
	}
	used := corev1.ResourceList{}
	for _, o := range others {
		for name, q := range resourcehelper.PodRequests(o, resourcehelper.PodResourcesOptions{}) {
			sum := used[name]
			sum.Add(q)
			used[name] = sum
		}
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	names := make([]corev1.ResourceName, 0, len(requests))
	for n := range requests {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		r, u, c := requests[n], used[n], node.Status.Allocatable[n]
		value := func() (int64, int64, int64) { return r.Value(), u.Value(), c.Value() }
		if n == corev1.ResourceCPU {
			value = func() (int64, int64, int64) { return r.MilliValue(), u.MilliValue(), c.MilliValue() }
		}
		if want, have, all := value(); want > 0 && want+have > all {
			return no(n, want, have, all)
		}
	}
	return nil
}

func portsConflict(pod *corev1.Pod, others []*corev1.Pod) bool {
	type port struct {
		proto corev1.Protocol
		n     int32
	}
	taken := map[port][]string{}
	each := func(p *corev1.Pod, f func(port, string)) {
		for i := range p.Spec.Containers {
			for _, x := range p.Spec.Containers[i].Ports {
				if x.HostPort > 0 {
					f(port{x.Protocol, x.HostPort}, x.HostIP)
				}
			}
		}
	}
	for _, o := range others {
		each(o, func(p port, ip string) { taken[p] = append(taken[p], ip) })
	}
	conflict := false
	any := func(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }
	each(pod, func(p port, ip string) {
		for _, t := range taken[p] {
			conflict = conflict || t == ip || any(t) || any(ip)
		}
	})
	return conflict
}
