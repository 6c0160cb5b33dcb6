package describe

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func writeEnvFrom(w *writer, all []corev1.EnvFromSource) {
	if len(all) == 0 {
		return
	}
	w.line(2, "Environment Variables from:\n")
	for _, e := range all {
		from, name, optional := "ConfigMap", "", false
		if e.ConfigMapRef != nil {
			name, optional = e.ConfigMapRef.Name, e.ConfigMapRef.Optional != nil && *e.ConfigMapRef.Optional
		} else if e.SecretRef != nil {
			from, name, optional = "Secret", e.SecretRef.Name, e.SecretRef.Optional != nil && *e.SecretRef.Optional
		}
		if e.Prefix != "" {
			from += " with prefix '" + e.Prefix + "'"
		}
		w.line(3, "%s\t%s\tOptional: %t\n", name, from, optional)
	}
}

// Values from Secrets and ConfigMaps are not read: the description names the source, and shows no secret.
func writeEnv(d *describer, c *corev1.Container) {
	if len(c.Env) == 0 {
		d.line(2, "Environment:\t<none>\n")
		return
	}
	d.line(2, "Environment:\n")
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			for i, l := range strings.Split(e.Value, "\n") {
				if i == 0 {
					d.line(3, "%s:\t%s\n", e.Name, l)
				} else {
					d.line(3, "\t%s\n", l)
				}
			}
			continue
		}
		writeEnvSource(d, c, e.Name, e.ValueFrom)
	}
}

func writeEnvSource(d *describer, c *corev1.Container, name string, v *corev1.EnvVarSource) {
	switch {
	case v.FieldRef != nil:
		d.line(3, "%s:\t%s (%s:%s)\n", name, fieldValue(d.pod, v.FieldRef.FieldPath), v.FieldRef.APIVersion,
			v.FieldRef.FieldPath)
	case v.ResourceFieldRef != nil:
		d.line(3, "%s:\t%s (%s)\n", name, resourceValue(c, v.ResourceFieldRef), v.ResourceFieldRef.Resource)
	case v.SecretKeyRef != nil:
		k := v.SecretKeyRef
		d.line(3, "%s:\t<set to the key '%s' in secret '%s'>\tOptional: %t\n", name, k.Key, k.Name,
			k.Optional != nil && *k.Optional)
	case v.ConfigMapKeyRef != nil:
		k := v.ConfigMapKeyRef
		d.line(3, "%s:\t<set to the key '%s' of config map '%s'>\tOptional: %t\n", name, k.Key, k.Name,
			k.Optional != nil && *k.Optional)
	}
}

// fieldValue is the pod's field at path, "" for a template (nil) and for all fields but the name and the namespace.
func fieldValue(p *corev1.Pod, path string) string {
	switch {
	case p == nil:
		return ""
	case path == "metadata.name":
		return p.Name
	case path == "metadata.namespace":
		return p.Namespace
	}
	return ""
}

// resourceValue is a container's request or limit in whole divisors (1 by default), rounded up.
func resourceValue(c *corev1.Container, s *corev1.ResourceFieldSelector) string {
	what, name, _ := strings.Cut(s.Resource, ".")
	list := c.Resources.Requests
	if what == "limits" {
		list = c.Resources.Limits
	}
	q, ok := list[corev1.ResourceName(name)]
	// Without a limit the kubelet gives the node's allocatable amount, which is not known here.
	if !ok && what == "limits" && (name == "cpu" || name == "memory") {
		return "node allocatable"
	}
	divisor := s.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	amount, unit := q.Value(), divisor.Value()
	// A divisor of CPU may be a thousandth, so both are compared in millicores.
	if name == "cpu" {
		amount, unit = q.MilliValue(), divisor.MilliValue()
	}
	if unit <= 0 {
		return "0"
	}
	return fmt.Sprint((amount + unit - 1) / unit)
}
