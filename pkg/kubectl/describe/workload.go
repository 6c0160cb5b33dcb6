package describe

import (
	"fmt"
	"io"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
)

func deployment(d *describer, o *appsv1.Deployment) error {
	d.line(0, "Name:\t%s\nNamespace:\t%s\nCreationTimestamp:\t%s\n", o.Name, o.Namespace, when(o.CreationTimestamp))
	d.labels(0, "Labels", o.Labels)
	d.annotations(0, o.Annotations)
	d.line(0, "Selector:\t%s\n", metav1.FormatLabelSelector(o.Spec.Selector))
	d.line(0, "Replicas:\t%d desired | %d updated | %d total | %d available | %d unavailable\n",
		count(o.Spec.Replicas), o.Status.UpdatedReplicas, o.Status.Replicas, o.Status.AvailableReplicas,
		o.Status.UnavailableReplicas)
	d.line(0, "StrategyType:\t%s\nMinReadySeconds:\t%d\n", o.Spec.Strategy.Type, o.Spec.MinReadySeconds)
	if r := o.Spec.Strategy.RollingUpdate; r != nil {
		d.line(0, "RollingUpdateStrategy:\t%s max unavailable, %s max surge\n", r.MaxUnavailable.String(),
			r.MaxSurge.String())
	}
	writeTemplate(d, o.Spec.Template)
	if len(o.Status.Conditions) > 0 {
		writeConditionsHead(d.writer)
		for _, c := range o.Status.Conditions {
			writeConditionRow(d.writer, string(c.Type), c.Status, c.Reason)
		}
	}
	return writeReplicaSets(d, o)
}

// writeReplicaSets names the Deployment's old and new ReplicaSets. The new one has the Deployment's revision. Others
// that the selector matches, but that it does not control, are left out.
func writeReplicaSets(d *describer, o *appsv1.Deployment) error {
	m, err := d.client.Mapping("replicasets.apps")
	if err != nil {
		return err
	}
	list, err := d.client.List(d.ctx, m, o.Namespace,
		metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(o.Spec.Selector), Limit: d.chunk})
	if err != nil {
		return err
	}
	revision := o.Annotations["deployment.kubernetes.io/revision"]
	var older, current []string
	for i := range list.Items {
		rs := &appsv1.ReplicaSet{}
		if err := resource.FromUnstructured(&list.Items[i], rs); err != nil {
			return err
		}
		// The selector alone is not enough: it may match ReplicaSets of other Deployments.
		if owner := metav1.GetControllerOf(rs); owner == nil || owner.UID != o.UID {
			continue
		}
		text := fmt.Sprintf("%s (%d/%d replicas created)", rs.Name, rs.Status.Replicas, count(rs.Spec.Replicas))
		if rs.Annotations["deployment.kubernetes.io/revision"] == revision {
			current = append(current, text)
		} else {
			older = append(older, text)
		}
	}
	if len(older)+len(current) > 0 {
		d.line(0, "OldReplicaSets:\t%s\nNewReplicaSet:\t%s\n", joined(older), joined(current))
	}
	return nil
}

func joined(s []string) string {
	if len(s) == 0 {
		return "<none>"
	}
	return strings.Join(s, ", ")
}

// The default is the API's.
func count(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func replicaSet(d *describer, o *appsv1.ReplicaSet) error {
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		return err
	}
	if err := writeReplicas(d, o, metav1.FormatLabelSelector(o.Spec.Selector), selector, o.Status.Replicas,
		count(o.Spec.Replicas)); err != nil {
		return err
	}
	writeTemplate(d, o.Spec.Template)
	if len(o.Status.Conditions) > 0 {
		writeConditionsHead(d.writer)
		for _, c := range o.Status.Conditions {
			writeConditionRow(d.writer, string(c.Type), c.Status, c.Reason)
		}
	}
	return nil
}

func replicationController(d *describer, o *corev1.ReplicationController) error {
	if err := writeReplicas(d, o, printers.FormatLabels(o.Spec.Selector), labels.SelectorFromSet(o.Spec.Selector),
		o.Status.Replicas, count(o.Spec.Replicas)); err != nil {
		return err
	}
	if o.Spec.Template != nil {
		writeTemplate(d, *o.Spec.Template)
	}
	if len(o.Status.Conditions) > 0 {
		writeConditionsHead(d.writer)
		for _, c := range o.Status.Conditions {
			writeConditionRow(d.writer, string(c.Type), c.Status, c.Reason)
		}
	}
	return nil
}

func writeConditionsHead(w *writer) {
	w.line(0, "Conditions:\n  Type\tStatus\tReason\n  ----\t------\t------\n")
}

func writeConditionRow(w *writer, kind string, status corev1.ConditionStatus, reason string) {
	w.line(1, "%v \t%v\t%v\n", kind, status, reason)
}

func writeReplicas(d *describer, o metav1.Object, shown string, selector labels.Selector, current,
	desired int32) error {
	d.line(0, "Name:\t%s\nNamespace:\t%s\nSelector:\t%s\n", o.GetName(), o.GetNamespace(), shown)
	d.labels(0, "Labels", o.GetLabels())
	d.annotations(0, o.GetAnnotations())
	if owner := metav1.GetControllerOf(o); owner != nil {
		d.line(0, "Controlled By:\t%s/%s\n", owner.Kind, owner.Name)
	}
	d.line(0, "Replicas:\t%d current / %d desired\n", current, desired)
	return writePhases(d, o, selector)
}

// writePhases writes the number of pods in each phase that o controls.
func writePhases(d *describer, o metav1.Object, selector labels.Selector) error {
	all, err := pods(d, o.GetNamespace(), metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return err
	}
	phases := map[corev1.PodPhase]int{}
	for _, p := range all {
		if owner := metav1.GetControllerOf(&p); owner != nil && owner.UID == o.GetUID() {
			phases[p.Status.Phase]++
		}
	}
	d.line(0, "Pods Status:\t%d Running / %d Waiting / %d Succeeded / %d Failed\n",
		phases[corev1.PodRunning], phases[corev1.PodPending], phases[corev1.PodSucceeded], phases[corev1.PodFailed])
	return nil
}

func pods(d *describer, namespace string, opts metav1.ListOptions) ([]corev1.Pod, error) {
	m, err := d.client.Mapping("pods")
	if err != nil {
		return nil, err
	}
	opts.Limit = d.chunk
	list, err := d.client.List(d.ctx, m, namespace, opts)
	if err != nil {
		return nil, err
	}
	out := make([]corev1.Pod, len(list.Items))
	for i := range list.Items {
		if err := resource.FromUnstructured(&list.Items[i], &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func writeTemplate(d *describer, t corev1.PodTemplateSpec) {
	d.line(0, "Pod Template:\n")
	d.labels(1, "Labels", t.Labels)
	if len(t.Annotations) > 0 {
		d.annotations(1, t.Annotations)
	}
	if t.Spec.ServiceAccountName != "" {
		d.line(1, "Service Account:\t%s\n", t.Spec.ServiceAccountName)
	}
	writeContainers(d, "Init Containers", t.Spec.InitContainers, nil, "  ")
	writeContainers(d, "Containers", t.Spec.Containers, nil, "  ")
	writeVolumes(d, t.Spec.Volumes, "  ")
	writeSpread(d.writer, "  ", t.Spec.TopologySpreadConstraints)
	if t.Spec.PriorityClassName != "" {
		d.line(1, "Priority Class Name:\t%s\n", t.Spec.PriorityClassName)
	}
	d.labels(1, "Node-Selectors", t.Spec.NodeSelector)
	writeTolerations(d.writer, "  ", t.Spec.Tolerations)
}

// Template describes a pod template, for other commands (rollout history).
func Template(w io.Writer, t corev1.PodTemplateSpec) {
	d := &describer{writer: &writer{w: w}, now: time.Now()}
	writeTemplate(d, t)
}
