package core

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/api/resources"
)

func serviceColumns() []metav1.TableColumnDefinition {
	doc := corev1.ServiceSpec{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		resources.NameColumn(),
		resources.Column("Type", doc["type"]),
		resources.Column("Cluster-IP", doc["clusterIP"]),
		resources.Column("External-IP", doc["externalIPs"]),
		resources.Column("Port(s)", doc["ports"]),
		resources.AgeColumn(),
		resources.Wide(resources.Column("Selector", doc["selector"])),
	}
}

func serviceCells(s *corev1.Service, now time.Time) []any {
	ip := s.Spec.ClusterIP
	if len(s.Spec.ClusterIPs) > 0 {
		ip = s.Spec.ClusterIPs[0]
	}
	return []any{s.Name, string(s.Spec.Type), orNone(ip), externalIP(s), orNone(portList(s.Spec.Ports)),
		resources.Age(s.CreationTimestamp, now), SelectorText(s.Spec.Selector)}
}

// externalIP is where clients outside reach the service.
func externalIP(s *corev1.Service) string {
	external := strings.Join(s.Spec.ExternalIPs, ",")
	switch s.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		balancer := ingressText(s.Status.LoadBalancer.Ingress)
		if external == "" && balancer == "" {
			return "<pending>"
		}
		return strings.Trim(balancer+","+external, ",")
	}
	return orNone(external)
}

func ingressText(in []corev1.LoadBalancerIngress) string {
	var all []string
	seen := map[string]bool{}
	for _, i := range in {
		a := i.IP
		if a == "" {
			a = i.Hostname
		}
		if a != "" && !seen[a] {
			all = append(all, a)
		}
		seen[a] = true
	}
	return strings.Join(all, ",")
}

func portList(ports []corev1.ServicePort) string {
	words := make([]string, len(ports))
	for i, p := range ports {
		words[i] = fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		if p.NodePort > 0 {
			words[i] = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
		}
	}
	return strings.Join(words, ",")
}

// SelectorText is a map selector as tables show it: "app=web,tier=front", or "<none>".
func SelectorText(m map[string]string) string {
	if len(m) == 0 {
		return none
	}
	return labels.FormatLabels(m)
}
