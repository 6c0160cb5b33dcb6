package core

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/resources"
)

func nodeColumns() []metav1.TableColumnDefinition {
	status, info := corev1.NodeStatus{}.SwaggerDoc(), corev1.NodeSystemInfo{}.SwaggerDoc()
	wide := func(name, doc string) metav1.TableColumnDefinition {
		return resources.Wide(resources.Column(name, doc))
	}
	return []metav1.TableColumnDefinition{
		resources.NameColumn(),
		resources.Column("Status", "The status of the node"),
		resources.Column("Roles", "The roles of the node"),
		resources.AgeColumn(),
		resources.Column("Version", info["kubeletVersion"]),
		wide("Internal-IP", status["addresses"]),
		wide("External-IP", status["addresses"]),
		wide("OS-Image", info["osImage"]),
		wide("Kernel-Version", info["kernelVersion"]),
		wide("Container-Runtime", info["containerRuntimeVersion"]),
	}
}

func nodeCells(n *corev1.Node, now time.Time) []any {
	roles := strings.Join(nodeRoles(n), ",")
	info := n.Status.NodeInfo
	return []any{n.Name, nodeStatus(n), orNone(roles), resources.Age(n.CreationTimestamp, now), info.KubeletVersion,
		nodeAddress(n, corev1.NodeInternalIP), nodeAddress(n, corev1.NodeExternalIP),
		orUnknown(info.OSImage), kernelText(&info), orUnknown(info.ContainerRuntimeVersion)}
}

// kernelText is the kernel's version and, where known, the machine's architecture: "6.1.0 (amd64)".
func kernelText(i *corev1.NodeSystemInfo) string {
	if i.KernelVersion == "" || i.Architecture == "" {
		return orUnknown(i.KernelVersion)
	}
	return i.KernelVersion + " (" + i.Architecture + ")"
}

func orUnknown(s string) string {
	if s == "" {
		return "<unknown>"
	}
	return s
}

// nodeStatus is Ready, NotReady or Unknown, and whether pods can be scheduled.
func nodeStatus(n *corev1.Node) string {
	s := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		s = "NotReady"
		if c.Status == corev1.ConditionTrue {
			s = "Ready"
		}
		break
	}
	if n.Spec.Unschedulable {
		s += ",SchedulingDisabled"
	}
	return s
}

func nodeAddress(n *corev1.Node, t corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == t {
			return a.Address
		}
	}
	return none
}

// nodeRoles reads a node's roles from its labels node-role.kubernetes.io/ROLE and kubernetes.io/role=ROLE, sorted.
func nodeRoles(n *corev1.Node) []string {
	var roles []string
	for k, v := range n.Labels {
		if role, ok := strings.CutPrefix(k, "node-role.kubernetes.io/"); ok && role != "" {
			roles = append(roles, role)
		} else if k == "kubernetes.io/role" && v != "" {
			roles = append(roles, v)
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}
