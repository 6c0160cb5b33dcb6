package core

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"bonsai/api/resources"
)

func podColumns() []metav1.TableColumnDefinition {
	spec, status := corev1.PodSpec{}.SwaggerDoc(), corev1.PodStatus{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		resources.NameColumn(),
		resources.Column("Ready", "The aggregate readiness state of this pod for accepting traffic."),
		resources.Column("Status", "The aggregate status of the containers in this pod."),
		resources.Column("Restarts",
			"The number of times the containers in this pod have been restarted and when the last container in this pod has restarted."),
		resources.AgeColumn(),
		resources.Wide(resources.Column("IP", status["podIP"])),
		resources.Wide(resources.Column("Node", spec["nodeName"])),
		resources.Wide(resources.Column("Nominated Node", status["nominatedNodeName"])),
		resources.Wide(resources.Column("Readiness Gates", spec["readinessGates"])),
	}
}

// none stands for a cell without a value.
const none = "<none>"

func podCells(p *corev1.Pod, now time.Time) []any {
	s := summarizePod(p)
	restarts := fmt.Sprint(s.Restarts)
	if s.Restarts != 0 && !s.LastRestart.IsZero() {
		restarts = fmt.Sprintf("%d (%s ago)", s.Restarts, duration.HumanDuration(now.Sub(s.LastRestart.Time)))
	}
	ip := none
	if len(p.Status.PodIPs) > 0 {
		ip = p.Status.PodIPs[0].IP
	}
	gates := none
	if n := len(p.Spec.ReadinessGates); n > 0 {
		gates = fmt.Sprintf("%d/%d", readyGates(p), n)
	}
	return []any{p.Name, fmt.Sprintf("%d/%d", s.Ready, s.Total), s.Status, restarts,
		resources.Age(p.CreationTimestamp, now),
		ip, orNone(p.Spec.NodeName), orNone(p.Status.NominatedNodeName), gates}
}

// podRowConditions marks the rows of pods that have ended, so that clients can hide them. The reason is the phase,
// whatever reason the status has.
func podRowConditions(p *corev1.Pod) []metav1.TableRowCondition {
	c := metav1.TableRowCondition{Type: metav1.RowCompleted, Status: metav1.ConditionTrue,
		Reason: string(p.Status.Phase)}
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		c.Message = "The pod has completed successfully."
	case corev1.PodFailed:
		c.Message = "The pod failed."
	default:
		return nil
	}
	return []metav1.TableRowCondition{c}
}

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

func readyGates(p *corev1.Pod) int {
	n := 0
	for _, g := range p.Spec.ReadinessGates {
		for _, c := range p.Status.Conditions {
			if c.Type == g.ConditionType {
				if c.Status == corev1.ConditionTrue {
					n++
				}
				break
			}
		}
	}
	return n
}
