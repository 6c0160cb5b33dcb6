package describe

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"bonsai/pkg/kubectl/resource"
)

func ingress(d *describer, i *networkingv1.Ingress) error {
	d.line(0, "Name:\t%s\n", i.Name)
	d.labels(0, "Labels", i.Labels)
	d.line(0, "Namespace:\t%s\nAddress:\t%s\n", i.Namespace, ingressAddresses(i.Status.LoadBalancer.Ingress))
	class := "<none>"
	if i.Spec.IngressClassName != nil {
		class = *i.Spec.IngressClassName
	}
	fallback := "<default>"
	if i.Spec.DefaultBackend != nil {
		fallback = backend(d, i.Namespace, i.Spec.DefaultBackend)
	}
	d.line(0, "Ingress Class:\t%s\nDefault backend:\t%s\n", class, fallback)
	writeTls(d.writer, i.Spec.TLS)
	d.line(0, "Rules:\n  Host\tPath\tBackends\n  ----\t----\t--------\n")
	shown := false
	for _, r := range i.Spec.Rules {
		if r.HTTP == nil {
			continue
		}
		shown = true
		host := r.Host
		if host == "" {
			host = "*"
		}
		d.line(1, "%s\t\n", host)
		for _, p := range r.HTTP.Paths {
			d.line(0, "\t%s \t%s\n", p.Path, backend(d, i.Namespace, &p.Backend))
		}
	}
	if !shown {
		d.line(1, "*\t*\t%s\n", fallback)
	}
	d.annotations(0, i.Annotations)
	return nil
}

func ingressAddresses(all []networkingv1.IngressLoadBalancerIngress) string {
	var out []string
	for _, a := range all {
		if a.IP != "" {
			out = append(out, a.IP)
		} else if a.Hostname != "" {
			out = append(out, a.Hostname)
		}
	}
	return strings.Join(out, ",")
}

// writeTls writes for each TLS entry the secret whose certificate terminates TLS, and its hosts.
func writeTls(w *writer, all []networkingv1.IngressTLS) {
	if len(all) == 0 {
		return
	}
	w.line(0, "TLS:\n")
	for _, t := range all {
		hosts := strings.Join(t.Hosts, ",")
		if t.SecretName == "" {
			w.line(1, "SNI routes %s\n", hosts)
		} else {
			w.line(1, "%s terminates %s\n", t.SecretName, hosts)
		}
	}
}

// backend returns the target of requests: an object, or a port of a Service with its endpoints. An error in reading
// these is shown in their place, as the rest of the Ingress is still of use.
func backend(d *describer, namespace string, b *networkingv1.IngressBackend) string {
	if r := b.Resource; r != nil {
		return fmt.Sprintf("APIGroup: %s, Kind: %s, Name: %s", or(r.APIGroup), r.Kind, r.Name)
	}
	if b.Service == nil {
		return ""
	}
	port := b.Service.Port.Name
	if b.Service.Port.Number > 0 {
		port = fmt.Sprint(b.Service.Port.Number)
	}
	behind, err := behind(d, namespace, b.Service)
	if err != nil {
		behind = fmt.Sprintf("<error: %v>", err)
	}
	return fmt.Sprintf("%s:%s (%s)", b.Service.Name, port, behind)
}

// behind returns the endpoints of a Service's port: "<none>" if the Service has none, "" if it has no such port.
func behind(d *describer, namespace string, b *networkingv1.IngressServiceBackend) (string, error) {
	slices, err := slicesOf(d, namespace, b.Name)
	if err != nil {
		return "", err
	}
	m, err := d.client.Mapping("services")
	if err != nil {
		return "", err
	}
	u, err := d.client.Get(d.ctx, m, namespace, b.Name)
	if err != nil {
		return "", err
	}
	service := &corev1.Service{}
	if err := resource.FromUnstructured(u, service); err != nil {
		return "", err
	}
	if !anyEndpoint(slices) {
		return "<none>", nil
	}
	for _, p := range service.Spec.Ports {
		if b.Port.Name != "" && p.Name == b.Port.Name || b.Port.Number != 0 && p.Port == b.Port.Number {
			return ready(slices, p.Name), nil
		}
	}
	return "", nil
}

func anyEndpoint(slices []discoveryv1.EndpointSlice) bool {
	for _, s := range slices {
		if len(s.Endpoints) > 0 {
			return true
		}
	}
	return false
}

func ingressClass(d *describer, c *networkingv1.IngressClass) error {
	writeHead(d.writer, c, false)
	d.line(0, "Controller:\t%s\n", c.Spec.Controller)
	if p := c.Spec.Parameters; p != nil {
		d.line(0, "Parameters:\n")
		if p.APIGroup != nil {
			d.line(1, "APIGroup:\t%s\n", *p.APIGroup)
		}
		d.line(1, "Kind:\t%s\n  Name:\t%s\n", p.Kind, p.Name)
	}
	return nil
}

func ipAddress(d *describer, a *networkingv1.IPAddress) error {
	writeHead(d.writer, a, false)
	if p := a.Spec.ParentRef; p != nil {
		d.line(0, "Parent Reference:\n  Group:\t%s\n  Resource:\t%s\n  Namespace:\t%s\n  Name:\t%s\n", p.Group,
			p.Resource, p.Namespace, p.Name)
	}
	return nil
}

func serviceCIDR(d *describer, c *networkingv1.ServiceCIDR) error {
	writeHead(d.writer, c, false)
	d.line(0, "CIDRs:\t%s\n", strings.Join(c.Spec.CIDRs, ", "))
	if len(c.Status.Conditions) > 0 {
		d.line(0, "Status:\nConditions:\n  Type\tStatus\tLastTransitionTime\tReason\tMessage\n")
		d.line(1, "----\t------\t------------------\t------\t-------\n")
		for _, c := range c.Status.Conditions {
			d.line(1, "%v\t%v\t%s\t%v\t%v\n", c.Type, c.Status, when(c.LastTransitionTime), c.Reason, c.Message)
		}
	}
	return nil
}
