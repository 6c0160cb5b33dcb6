package node

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Pressure tells which resources of the node are short.
type Pressure struct{ Memory, Disk, PID bool }

// conditions returns have with the kubelet's four conditions set; unready is why the node is not ready, empty if it is.
// Transition times change only with the status. It changes have in place and keeps conditions of other writers. The
// reasons and messages are upstream's words. Heartbeat times are always now.
func conditions(have []corev1.NodeCondition, p Pressure, unready string, now metav1.Time) []corev1.NodeCondition {
	set := func(kind corev1.NodeConditionType, status bool, reason, message string) {
		c := corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message,
			LastHeartbeatTime: now, LastTransitionTime: now}
		if status {
			c.Status = corev1.ConditionTrue
		}
		for i := range have {
			if have[i].Type == kind {
				if have[i].Status == c.Status {
					c.LastTransitionTime = have[i].LastTransitionTime
				}
				have[i] = c
				return
			}
		}
		have = append(have, c)
	}
	if p.Memory {
		set(corev1.NodeMemoryPressure, true, "KubeletHasInsufficientMemory",
			"kubelet has insufficient memory available")
	} else {
		set(corev1.NodeMemoryPressure, false, "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
	}
	if p.Disk {
		set(corev1.NodeDiskPressure, true, "KubeletHasDiskPressure", "kubelet has disk pressure")
	} else {
		set(corev1.NodeDiskPressure, false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
	}
	if p.PID {
		set(corev1.NodePIDPressure, true, "KubeletHasInsufficientPID", "kubelet has insufficient PID available")
	} else {
		set(corev1.NodePIDPressure, false, "KubeletHasSufficientPID", "kubelet has sufficient PID available")
	}
	if unready != "" {
		set(corev1.NodeReady, false, "KubeletNotReady", unready)
	} else {
		set(corev1.NodeReady, true, "KubeletReady", "kubelet is posting ready status")
	}
	return have
}

// notReady says why the node is not ready, "" if it is. err is why the runtime counts as down, relistErr what is wrong
// with the lists of its pods, down what else keeps the node from work; each nil if nothing. If the runtime does not
// answer, h is from an earlier answer or empty, so the network is not judged by it. Several reasons are joined in
// brackets, as upstream's aggregate errors are.
func notReady(h runtime.Health, err, relistErr, down error) string {
	var why []string
	switch {
	case err != nil:
		why = append(why, "container runtime is down: "+err.Error())
	case !h.RuntimeReady:
		why = append(why, fmt.Sprintf("container runtime not ready: RuntimeReady=false reason:%s message:%s",
			h.RuntimeReason, h.RuntimeMessage))
	}
	if relistErr != nil {
		why = append(why, "PLEG is not healthy: "+relistErr.Error())
	}
	if err == nil && !h.NetworkReady {
		why = append(why, networkNotReady(h))
	}
	if down != nil {
		why = append(why, down.Error())
	}
	if len(why) > 1 {
		return "[" + strings.Join(why, ", ") + "]"
	}
	return strings.Join(why, "")
}

// networkNotReady returns the message about a runtime without a network, for the node and its pods.
func networkNotReady(h runtime.Health) string {
	return fmt.Sprintf("container runtime network not ready: NetworkReady=false reason:%s message:%s", h.NetworkReason,
		h.NetworkMessage)
}

func conditionTrue(list []corev1.NodeCondition, kind corev1.NodeConditionType) bool {
	for _, c := range list {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
