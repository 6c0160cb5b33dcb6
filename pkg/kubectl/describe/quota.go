package describe

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/kubectl/resource"
)

func resourceQuota(d *describer, q *corev1.ResourceQuota) error {
	d.line(0, "Name:\t%s\nNamespace:\t%s\n", q.Name, q.Namespace)
	writeScopes(d.writer, "", " * ", q.Spec.Scopes)
	d.line(0, "Resource\tUsed\tHard\n--------\t----\t----\n")
	writeUsed(d.writer, "", q)
	return nil
}

// writeScopes names a quota's scopes at indent, and says what each of them matches after bullet.
func writeScopes(w *writer, indent, bullet string, all []corev1.ResourceQuotaScope) {
	if len(all) == 0 {
		return
	}
	all = slices.Sorted(slices.Values(all))
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = string(s)
	}
	w.line(0, "%sScopes:\t%s\n", indent, strings.Join(names, ", "))
	for _, s := range all {
		if help := scopeHelp(s); help != "" {
			w.line(0, "%s%s\n", bullet, help)
		}
	}
}

// scopeHelp is the sentence about a scope, "" for one that has none.
func scopeHelp(s corev1.ResourceQuotaScope) string {
	switch s {
	case corev1.ResourceQuotaScopeTerminating:
		return "Matches all pods that have an active deadline. These pods have a limited lifespan on a node before being actively terminated by the system."
	case corev1.ResourceQuotaScopeNotTerminating:
		return "Matches all pods that do not have an active deadline. These pods usually include long running pods whose container command is not expected to terminate."
	case corev1.ResourceQuotaScopeBestEffort:
		return "Matches all pods that do not have resource requirements set. These pods have a best effort quality of service."
	case corev1.ResourceQuotaScopeNotBestEffort:
		return "Matches all pods that have at least one resource requirement set. These pods have a burstable or guaranteed quality of service."
	}
	return ""
}

// writeUsed writes what the quota allows and how much of it is in use.
func writeUsed(w *writer, indent string, q *corev1.ResourceQuota) {
	for _, name := range keys(q.Status.Hard) {
		hard, used := q.Status.Hard[name], q.Status.Used[name]
		w.line(0, "%s%s\t%s\t%s\n", indent, name, used.String(), hard.String())
	}
}

// writeQuotas writes the quotas of a namespace, below its own fields.
func writeQuotas(d *describer, namespace string) error {
	all, err := listed[corev1.ResourceQuota](d, "resourcequotas", namespace, "")
	if err != nil {
		return err
	}
	if len(all) == 0 {
		d.line(0, "\nNo resource quota.\n")
		return nil
	}
	d.line(0, "\nResource Quotas\n")
	for i := range all {
		q := &all[i]
		d.line(1, "Name:\t%s\n", q.Name)
		writeScopes(d.writer, "  ", "  * ", q.Spec.Scopes)
		d.line(1, "Resource\tUsed\tHard\n  --------\t---\t---\n")
		writeUsed(d.writer, "  ", q)
	}
	return nil
}

func limitRange(d *describer, l *corev1.LimitRange) error {
	d.line(0, "Name:\t%s\nNamespace:\t%s\n", l.Name, l.Namespace)
	writeLimitRows(d.writer, "", []corev1.LimitRange{*l})
	return nil
}

// writeLimits writes the limits of a namespace, below its quotas.
func writeLimits(d *describer, namespace string) error {
	all, err := listed[corev1.LimitRange](d, "limitranges", namespace, "")
	if err != nil {
		return err
	}
	if len(all) == 0 {
		d.line(0, "\nNo LimitRange resource.\n")
		return nil
	}
	d.line(0, "\nResource Limits\n")
	writeLimitRows(d.writer, " ", all)
	return nil
}

func writeLimitRows(w *writer, indent string, all []corev1.LimitRange) {
	w.line(0, "%sType\tResource\tMin\tMax\tDefault Request\tDefault Limit\tMax Limit/Request Ratio\n", indent)
	w.line(0, "%s----\t--------\t---\t---\t---------------\t-------------\t-----------------------\n", indent)
	for _, l := range all {
		for _, i := range l.Spec.Limits {
			lists := []corev1.ResourceList{i.Min, i.Max, i.DefaultRequest, i.Default, i.MaxLimitRequestRatio}
			named := map[corev1.ResourceName]bool{}
			for _, list := range lists {
				for name := range list {
					named[name] = true
				}
			}
			for _, name := range keys(named) {
				w.line(0, "%s%s\t%s", indent, i.Type, name)
				for _, list := range lists {
					w.line(0, "\t%s", amount(list, name))
				}
				w.line(0, "\n")
			}
		}
	}
}

// amount is the quantity, "-" if there is none.
func amount(l corev1.ResourceList, name corev1.ResourceName) string {
	if q, ok := l[name]; ok {
		return q.String()
	}
	return "-"
}

// writeClaims writes the claims that a StatefulSet makes for each of its pods.
func writeClaims(w *writer, all []corev1.PersistentVolumeClaim) {
	if len(all) == 0 {
		w.line(0, "Volume Claims:\t<none>\n")
		return
	}
	w.line(0, "Volume Claims:\n")
	for _, c := range all {
		w.line(1, "Name:\t%s\n  StorageClass:\t%s\n", c.Name, storageClassOf(&c))
		w.labels(1, "Labels", c.Labels)
		w.labels(1, "Annotations", c.Annotations)
		capacity := "<default>"
		if q, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
			capacity = q.String()
		}
		w.line(1, "Capacity:\t%s\n  Access Modes:\t%s\n", capacity, fmt.Sprint(c.Spec.AccessModes))
	}
}

// listed reads all objects of a kind in a namespace, those that the field selector chooses if it is not "".
func listed[T any, P interface {
	*T
	runtime.Object
}](d *describer, kind, namespace, fields string) ([]T, error) {
	m, err := d.client.Mapping(kind)
	if err != nil {
		return nil, err
	}
	list, err := d.client.List(d.ctx, m, namespace, metav1.ListOptions{FieldSelector: fields, Limit: d.chunk})
	if err != nil {
		return nil, err
	}
	out := make([]T, len(list.Items))
	for i := range list.Items {
		if err := resource.FromUnstructured(&list.Items[i], P(&out[i])); err != nil {
			return nil, err
		}
	}
	return out, nil
}
