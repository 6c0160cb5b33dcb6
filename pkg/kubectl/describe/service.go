package describe

import (
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
)

func service(d *describer, s *corev1.Service) error {
	writeHead(d.writer, s, true)
	d.line(0, "Selector:\t%s\nType:\t%s\n", printers.FormatLabels(s.Spec.Selector), s.Spec.Type)
	if s.Spec.IPFamilyPolicy != nil {
		d.line(0, "IP Family Policy:\t%s\n", *s.Spec.IPFamilyPolicy)
	}
	d.line(0, "IP Families:\t%s\nIP:\t%s\nIPs:\t%s\n", commas(s.Spec.IPFamilies), s.Spec.ClusterIP,
		commas(s.Spec.ClusterIPs))
	if len(s.Spec.ExternalIPs) > 0 {
		d.line(0, "External IPs:\t%s\n", strings.Join(s.Spec.ExternalIPs, ","))
	}
	if s.Spec.ExternalName != "" {
		d.line(0, "External Name:\t%s\n", s.Spec.ExternalName)
	}
	if s.Spec.LoadBalancerIP != "" {
		d.line(0, "Desired LoadBalancer IP:\t%s\n", s.Spec.LoadBalancerIP)
	}
	if balancers := balancerText(s.Status.LoadBalancer.Ingress); balancers != "" {
		d.line(0, "LoadBalancer Ingress:\t%s\n", balancers)
	}
	slices, err := slicesOf(d, s.Namespace, s.Name)
	if err != nil {
		slices = nil // who may read a Service may not read its endpoints
	}
	for _, p := range s.Spec.Ports {
		name := p.Name
		if name == "" {
			name = "<unset>"
		}
		d.line(0, "Port:\t%s\t%d/%s\n", name, p.Port, p.Protocol)
		d.line(0, "TargetPort:\t%s/%s\n", p.TargetPort.String(), p.Protocol)
		if p.AppProtocol != nil {
			d.line(0, "AppProtocol:\t%s\n", *p.AppProtocol)
		}
		if p.NodePort != 0 {
			d.line(0, "NodePort:\t%s\t%d/%s\n", name, p.NodePort, p.Protocol)
		}
		d.line(0, "Endpoints:\t%s\n", ready(slices, p.Name))
	}
	d.line(0, "Session Affinity:\t%s\n", s.Spec.SessionAffinity)
	if s.Spec.ExternalTrafficPolicy != "" {
		d.line(0, "External Traffic Policy:\t%s\n", s.Spec.ExternalTrafficPolicy)
	}
	if s.Spec.InternalTrafficPolicy != nil {
		d.line(0, "Internal Traffic Policy:\t%s\n", *s.Spec.InternalTrafficPolicy)
	}
	if s.Spec.HealthCheckNodePort != 0 {
		d.line(0, "HealthCheck NodePort:\t%d\n", s.Spec.HealthCheckNodePort)
	}
	if len(s.Spec.LoadBalancerSourceRanges) > 0 {
		d.line(0, "LoadBalancer Source Ranges:\t%s\n", strings.Join(s.Spec.LoadBalancerSourceRanges, ","))
	}
	if s.Spec.TrafficDistribution != nil {
		d.line(0, "Traffic Distribution:\t%s\n", *s.Spec.TrafficDistribution)
	}
	return nil
}

// commas joins the values, "<none>" if there are none.
func commas[S ~string](all []S) string {
	if len(all) == 0 {
		return "<none>"
	}
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = string(v)
	}
	return strings.Join(out, ",")
}

// balancerText names the addresses of load balancers, with the mode of those that say it: "192.0.2.1 (VIP),
// lb.example.com".
func balancerText(all []corev1.LoadBalancerIngress) string {
	var out []string
	for _, i := range all {
		switch {
		case i.IP != "" && i.IPMode != nil:
			out = append(out, fmt.Sprintf("%s (%s)", i.IP, *i.IPMode))
		case i.IP != "":
			out = append(out, i.IP)
		default:
			out = append(out, i.Hostname)
		}
	}
	return strings.Join(out, ", ")
}

// slicesOf returns the EndpointSlices of a Service, whoever made them: their label names the Service.
func slicesOf(d *describer, namespace, service string) ([]discoveryv1.EndpointSlice, error) {
	m, err := d.client.Mapping("endpointslices.discovery.k8s.io")
	if err != nil {
		return nil, err
	}
	list, err := d.client.List(d.ctx, m, namespace,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service, Limit: d.chunk})
	if err != nil {
		return nil, err
	}
	out := make([]discoveryv1.EndpointSlice, len(list.Items))
	for i := range list.Items {
		if err := resource.FromUnstructured(&list.Items[i], &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ready returns the ready endpoints of the port, sorted, three at most and the number of the others.
func ready(slices []discoveryv1.EndpointSlice, port string) string {
	const most = 3
	var all []string
	for _, s := range slices {
		for _, p := range s.Ports {
			if p.Name == nil && port != "" || p.Name != nil && *p.Name != port || p.Port == nil {
				continue
			}
			for _, e := range s.Endpoints {
				if e.Conditions.Ready != nil && !*e.Conditions.Ready {
					continue
				}
				for _, a := range e.Addresses {
					all = append(all, fmt.Sprintf("%s:%d", a, *p.Port))
				}
			}
		}
	}
	sort.Strings(all)
	if len(all) == 0 {
		return "<none>"
	}
	if len(all) > most {
		return strings.Join(all[:most], ",") + fmt.Sprintf(" + %d more...", len(all)-most)
	}
	return strings.Join(all, ",")
}

func endpoints(d *describer, e *corev1.Endpoints) error {
	writeHead(d.writer, e, true)
	d.line(0, "Subsets:\n")
	for _, s := range e.Subsets {
		d.line(1, "Addresses:\t%s\n", addresses(s.Addresses))
		d.line(1, "NotReadyAddresses:\t%s\n", addresses(s.NotReadyAddresses))
		if len(s.Ports) > 0 {
			d.line(1, "Ports:\n")
			d.line(2, "Name\tPort\tProtocol\n    ----\t----\t--------\n")
			for _, p := range s.Ports {
				name := p.Name
				if name == "" {
					name = "<unset>"
				}
				d.line(2, "%s\t%d\t%s\n", name, p.Port, p.Protocol)
			}
		}
		d.line(0, "\n")
	}
	return nil
}

func addresses(all []corev1.EndpointAddress) string {
	var out []string
	for _, a := range all {
		out = append(out, a.IP)
	}
	if len(out) == 0 {
		return "<none>"
	}
	return strings.Join(out, ",")
}

func endpointSlice(d *describer, s *discoveryv1.EndpointSlice) error {
	writeHead(d.writer, s, true)
	d.line(0, "AddressType:\t%s\n", s.AddressType)
	if len(s.Ports) == 0 {
		d.line(0, "Ports: <unset>\n")
	} else {
		d.line(0, "Ports:\n  Name\tPort\tProtocol\n  ----\t----\t--------\n")
		for _, p := range s.Ports {
			port := "<unset>"
			if p.Port != nil {
				port = fmt.Sprint(*p.Port)
			}
			protocol := corev1.ProtocolTCP
			if p.Protocol != nil {
				protocol = *p.Protocol
			}
			d.line(1, "%s\t%s\t%s\n", orUnset(p.Name), port, protocol)
		}
	}
	if len(s.Endpoints) == 0 {
		d.line(0, "Endpoints: <none>\n")
		return nil
	}
	d.line(0, "Endpoints:\n")
	for _, e := range s.Endpoints {
		d.line(1, "- Addresses:\t%s\n    Conditions:\n", strings.Join(e.Addresses, ", "))
		ready := "<unset>"
		if e.Conditions.Ready != nil {
			ready = fmt.Sprint(*e.Conditions.Ready)
		}
		d.line(3, "Ready:\t%s\n", ready)
		d.line(2, "Hostname:\t%s\n", orUnset(e.Hostname))
		if e.TargetRef != nil {
			d.line(2, "TargetRef:\t%s/%s\n", e.TargetRef.Kind, e.TargetRef.Name)
		}
		d.line(2, "NodeName:\t%s\n    Zone:\t%s\n", orUnset(e.NodeName), orUnset(e.Zone))
	}
	return nil
}

func orUnset(s *string) string {
	if s == nil || *s == "" {
		return "<unset>"
	}
	return *s
}
