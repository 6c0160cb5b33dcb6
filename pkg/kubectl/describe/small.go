package describe

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubectl/printers"
)

func namespace(d *describer, n *corev1.Namespace) error {
	writeHead(d.writer, n, false)
	d.line(0, "Status:\t%s\n", n.Status.Phase)
	if len(n.Status.Conditions) > 0 {
		d.line(0, "Conditions:\n  Type\tStatus\tLastTransitionTime\tReason\tMessage\n")
		d.line(1, "----\t------\t------------------\t------\t-------\n")
		for _, c := range n.Status.Conditions {
			d.line(1, "%v\t%v\t%s\t%v\t%v\n", c.Type, c.Status, when(c.LastTransitionTime), c.Reason, c.Message)
		}
	}
	if err := writeQuotas(d, n.Name); err != nil {
		return err
	}
	return writeLimits(d, n.Name)
}

func configMap(d *describer, c *corev1.ConfigMap) error {
	writeHead(d.writer, c, true)
	d.line(0, "\nData\n====\n")
	for _, k := range keys(c.Data) {
		d.line(0, "%s:\n----\n%s\n\n", k, c.Data[k])
	}
	d.line(0, "\nBinaryData\n====\n")
	for _, k := range keys(c.BinaryData) {
		d.line(0, "%s: %d bytes\n", k, len(c.BinaryData[k]))
	}
	d.line(0, "\n")
	return nil
}

// secret shows sizes and no values, except the token of a service account's Secret, as upstream does.
func secret(d *describer, s *corev1.Secret) error {
	writeHead(d.writer, s, true)
	d.line(0, "\nType:\t%s\n\nData\n====\n", s.Type)
	for _, k := range keys(s.Data) {
		if s.Type == corev1.SecretTypeServiceAccountToken && k == corev1.ServiceAccountTokenKey {
			d.line(0, "%s:\t%s\n", k, s.Data[k])
			continue
		}
		d.line(0, "%s:\t%d bytes\n", k, len(s.Data[k]))
	}
	return nil
}

func serviceAccount(d *describer, s *corev1.ServiceAccount) error {
	writeHead(d.writer, s, true)
	d.line(0, "Image pull secrets:\t")
	if len(s.ImagePullSecrets) == 0 {
		d.line(0, "<none>\n")
	}
	for i, p := range s.ImagePullSecrets {
		if i > 0 {
			d.line(0, "\t")
		}
		d.line(0, "%s\n", p.Name)
	}
	return nil
}

func role(d *describer, r *rbacv1.Role) error { return writeRules(d.writer, r, r.Rules) }

func clusterRole(d *describer, r *rbacv1.ClusterRole) error { return writeRules(d.writer, r, r.Rules) }

// writeRules writes one line for each resource (or URL) of the rules.
func writeRules(w *writer, o metav1.Object, all []rbacv1.PolicyRule) error {
	writeHead(w, o, false)
	w.line(0, "PolicyRule:\n  Resources\tNon-Resource URLs\tResource Names\tVerbs\n")
	w.line(1, "---------\t-----------------\t--------------\t-----\n")
	for _, row := range printers.RuleRows(all) {
		w.line(1, "%s\t%s\t%s\t%s\n", row[0], row[1], row[2], row[3])
	}
	return nil
}

func roleBinding(d *describer, b *rbacv1.RoleBinding) error {
	return writeBinding(d.writer, b, b.RoleRef, b.Subjects)
}

func clusterRoleBinding(d *describer, b *rbacv1.ClusterRoleBinding) error {
	return writeBinding(d.writer, b, b.RoleRef, b.Subjects)
}

func writeBinding(w *writer, o metav1.Object, ref rbacv1.RoleRef, subjects []rbacv1.Subject) error {
	writeHead(w, o, false)
	w.line(0, "Role:\n  Kind:\t%s\n  Name:\t%s\n", ref.Kind, ref.Name)
	w.line(0, "Subjects:\n  Kind\tName\tNamespace\n  ----\t----\t---------\n")
	for _, s := range subjects {
		w.line(1, "%s\t%s\t%s\n", s.Kind, s.Name, s.Namespace)
	}
	return nil
}

func priorityClass(d *describer, p *schedulingv1.PriorityClass) error {
	policy := corev1.PreemptLowerPriority
	if p.PreemptionPolicy != nil {
		policy = *p.PreemptionPolicy
	}
	d.line(0, "Name:\t%s\nValue:\t%s\nGlobalDefault:\t%v\nPreemptionPolicy:\t%s\nDescription:\t%s\nAnnotations:\t%s\n",
		p.Name, fmt.Sprint(p.Value), p.GlobalDefault, policy, p.Description, printers.FormatLabels(p.Annotations))
	return nil
}
