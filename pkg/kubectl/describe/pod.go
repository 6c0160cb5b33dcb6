package describe

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The pod describer sets d.pod first, because variables of its containers show fields of it (env.go). It makes no
// request of its own; the events are added by one.
func pod(d *describer, p *corev1.Pod) error {
	d.pod = p
	d.line(0, "Name:\t%s\nNamespace:\t%s\n", p.Name, p.Namespace)
	if p.Spec.Priority != nil {
		d.line(0, "Priority:\t%d\n", *p.Spec.Priority)
	}
	if p.Spec.PriorityClassName != "" {
		d.line(0, "Priority Class Name:\t%s\n", p.Spec.PriorityClassName)
	}
	if p.Spec.RuntimeClassName != nil {
		d.line(0, "Runtime Class Name:\t%s\n", *p.Spec.RuntimeClassName)
	}
	if p.Spec.ServiceAccountName != "" {
		d.line(0, "Service Account:\t%s\n", p.Spec.ServiceAccountName)
	}
	if p.Spec.NodeName == "" {
		d.line(0, "Node:\t<none>\n")
	} else {
		d.line(0, "Node:\t%s\n", p.Spec.NodeName+"/"+p.Status.HostIP)
	}
	if p.Status.StartTime != nil {
		d.line(0, "Start Time:\t%s\n", when(*p.Status.StartTime))
	}
	d.labels(0, "Labels", p.Labels)
	d.annotations(0, p.Annotations)
	writePodStatus(d, p)
	writeContainers(d, "Init Containers", p.Spec.InitContainers, p.Status.InitContainerStatuses, "")
	writeContainers(d, "Containers", p.Spec.Containers, p.Status.ContainerStatuses, "")
	writeContainers(d, "Ephemeral Containers", ephemeral(p), p.Status.EphemeralContainerStatuses, "")
	writeReadinessGates(d.writer, p)
	if len(p.Status.Conditions) > 0 {
		d.line(0, "Conditions:\n  Type\tStatus\n")
		for _, c := range p.Status.Conditions {
			d.line(1, "%v \t%v \n", c.Type, c.Status)
		}
	}
	writeVolumes(d, p.Spec.Volumes, "")
	d.line(0, "QoS Class:\t%s\n", p.Status.QOSClass)
	d.labels(0, "Node-Selectors", p.Spec.NodeSelector)
	writeTolerations(d.writer, "", p.Spec.Tolerations)
	writeSpread(d.writer, "", p.Spec.TopologySpreadConstraints)
	return nil
}

// ephemeral returns the pod's ephemeral containers as plain ones: the two types have the same fields.
func ephemeral(p *corev1.Pod) []corev1.Container {
	var out []corev1.Container
	for _, e := range p.Spec.EphemeralContainers {
		out = append(out, corev1.Container(e.EphemeralContainerCommon))
	}
	return out
}

// writeReadinessGates writes the conditions, besides its containers, that the pod's readiness depends on.
func writeReadinessGates(w *writer, p *corev1.Pod) {
	if len(p.Spec.ReadinessGates) == 0 {
		return
	}
	w.line(0, "Readiness Gates:\n  Type\tStatus\n")
	for _, g := range p.Spec.ReadinessGates {
		status := "<none>"
		for _, c := range p.Status.Conditions {
			if c.Type == g.ConditionType {
				status = string(c.Status)
			}
		}
		w.line(1, "%v \t%v \n", g.ConditionType, status)
	}
}

// writeSpread shows the constraints by topology key, at space.
func writeSpread(w *writer, space string, all []corev1.TopologySpreadConstraint) {
	// Sorting in place would change the object that the caller shows next.
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b corev1.TopologySpreadConstraint) int {
		return strings.Compare(a.TopologyKey, b.TopologyKey)
	})
	for i, c := range all {
		title := ""
		if i == 0 {
			title = space + "Topology Spread Constraints:"
		}
		selector := ""
		if c.LabelSelector != nil {
			selector = " for selector " + metav1.FormatLabelSelector(c.LabelSelector)
		}
		w.line(0, "%s\t%s:%s when max skew %d is exceeded%s\n", title, c.TopologyKey, c.WhenUnsatisfiable, c.MaxSkew,
			selector)
	}
}

// A pod that is being deleted shows "Terminating" and since when, whatever its phase. The time counts from the deletion
// timestamp, which lies in the future during the grace period.
func writePodStatus(d *describer, p *corev1.Pod) {
	if p.DeletionTimestamp != nil {
		d.line(0, "Status:\tTerminating (lasts %s)\n", age(d.now.Sub(p.DeletionTimestamp.Time)))
		if p.DeletionGracePeriodSeconds != nil {
			d.line(0, "Termination Grace Period:\t%ds\n", *p.DeletionGracePeriodSeconds)
		}
	} else {
		d.line(0, "Status:\t%s\n", p.Status.Phase)
	}
	if p.Status.Reason != "" {
		d.line(0, "Reason:\t%s\n", p.Status.Reason)
	}
	if p.Status.Message != "" {
		d.line(0, "Message:\t%s\n", p.Status.Message)
	}
	if sc := p.Spec.SecurityContext; sc != nil && sc.SeccompProfile != nil {
		d.line(0, "SeccompProfile:\t%s\n", sc.SeccompProfile.Type)
	}
	d.line(0, "IP:\t%s\n", p.Status.PodIP)
	if len(p.Status.PodIPs) == 0 {
		d.line(0, "IPs:\t<none>\n")
	} else {
		d.line(0, "IPs:\n")
		for _, ip := range p.Status.PodIPs {
			d.line(1, "IP:\t%s\n", ip.IP)
		}
	}
	for _, o := range p.OwnerReferences {
		if o.Controller != nil && *o.Controller {
			d.line(0, "Controlled By:\t%s/%s\n", o.Kind, o.Name)
		}
	}
	if p.Status.NominatedNodeName != "" {
		d.line(0, "NominatedNodeName:\t%s\n", p.Status.NominatedNodeName)
	}
	if r := p.Spec.Resources; r != nil {
		d.line(0, "Resources:\n")
		writeQuantities(d.writer, 1, "Limits", r.Limits)
		writeQuantities(d.writer, 1, "Requests", r.Requests)
	}
}

// Tolerations are sorted by key, as upstream's. The title is written even without any, so the line says that there are
// none.
func writeTolerations(w *writer, space string, all []corev1.Toleration) {
	w.line(0, "%sTolerations:\t", space)
	if len(all) == 0 {
		w.line(0, "<none>\n")
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b corev1.Toleration) int { return strings.Compare(a.Key, b.Key) })
	for i, t := range all {
		if i > 0 {
			w.line(0, "\t")
		}
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		if t.Effect != "" {
			text += ":" + string(t.Effect)
		}
		if t.Operator == corev1.TolerationOpExists && t.Value == "" {
			if t.Key != "" || t.Effect != "" {
				text += " op=Exists"
			} else {
				text = "op=Exists"
			}
		}
		if t.TolerationSeconds != nil {
			text += " for " + seconds(*t.TolerationSeconds)
		}
		w.line(0, "%s\n", strings.TrimSpace(text))
	}
}
