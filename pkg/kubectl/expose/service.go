package expose

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/pkg/kubectl/resource"
)

// spec is what the flags say about the service.
type spec struct {
	name, labels, selector     string
	port, targetPort, protocol string
	kind, affinity             string
	clusterIP, externalIP      string
	loadBalancerIP             string
}

// facts are what an object tells about itself.
type facts struct {
	labels   map[string]string
	selector map[string]string
	// noSelector says why selector is nil.
	noSelector error
	ports      []port
}

// port is a number and its protocol.
type port struct {
	number   int32
	protocol corev1.Protocol
}

// inspect reads an object that can be exposed.
func inspect(u *unstructured.Unstructured) (*facts, error) {
	f := &facts{labels: u.GetLabels()}
	switch u.GetKind() {
	case "Pod":
		pod := &corev1.Pod{}
		if err := resource.FromUnstructured(u, pod); err != nil {
			return nil, err
		}
		f.ports = containerPorts(pod.Spec.Containers)
		if f.selector = u.GetLabels(); len(f.selector) == 0 {
			f.noSelector = errors.New("the pod has no labels and cannot be exposed")
		}
	case "Service":
		s := &corev1.Service{}
		if err := resource.FromUnstructured(u, s); err != nil {
			return nil, err
		}
		for _, p := range s.Spec.Ports {
			f.ports = append(f.ports, port{p.Port, p.Protocol})
		}
		if f.selector = s.Spec.Selector; len(f.selector) == 0 {
			f.noSelector = errors.New("the service has no pod selector set")
		}
	case "ReplicationController":
		rc := &corev1.ReplicationController{}
		if err := resource.FromUnstructured(u, rc); err != nil {
			return nil, err
		}
		f.selector = rc.Spec.Selector
		if rc.Spec.Template != nil {
			f.ports = containerPorts(rc.Spec.Template.Spec.Containers)
		}
	case "Deployment", "ReplicaSet":
		return f, f.workload(u)
	default:
		return nil, fmt.Errorf("cannot expose a %s", u.GroupVersionKind().GroupKind())
	}
	return f, nil
}

// workload reads a Deployment or ReplicaSet, whose selector must be a plain set of labels.
func (f *facts) workload(u *unstructured.Unstructured) error {
	w := &struct {
		Spec struct {
			Selector *metav1.LabelSelector
			Template corev1.PodTemplateSpec
		}
	}{}
	data, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, w); err != nil {
		return fmt.Errorf("decode %s %q: %w", u.GetKind(), u.GetName(), err)
	}
	f.ports = containerPorts(w.Spec.Template.Spec.Containers)
	switch s := w.Spec.Selector; {
	case s == nil || len(s.MatchLabels) == 0:
		f.noSelector = errors.New("invalid deployment: no selectors, therefore cannot be exposed")
	case len(s.MatchExpressions) > 0:
		f.noSelector = fmt.Errorf("couldn't convert expressions - %q to map-based selector format", s.MatchExpressions)
	default:
		f.selector = s.MatchLabels
	}
	return nil
}

func containerPorts(containers []corev1.Container) []port {
	var out []port
	for _, c := range containers {
		for _, p := range c.Ports {
			out = append(out, port{p.ContainerPort, p.Protocol})
		}
	}
	return out
}

// service builds the service for what f tells.
func (s *spec) service(f *facts) (*corev1.Service, error) {
	selector, err := s.selectorFor(f)
	if err != nil {
		return nil, err
	}
	ports, err := s.ports(f)
	if err != nil {
		return nil, err
	}
	labels := f.labels
	if s.labels != "" {
		if labels, err = parseLabels(s.labels); err != nil {
			return nil, err
		}
	}
	out := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{Kind: "Service", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: labels},
		Spec: corev1.ServiceSpec{
			Selector: selector, Ports: ports, Type: corev1.ServiceType(s.kind), ClusterIP: s.clusterIP,
		},
	}
	if s.externalIP != "" {
		out.Spec.ExternalIPs = []string{s.externalIP}
	}
	if out.Spec.Type == corev1.ServiceTypeLoadBalancer {
		out.Spec.LoadBalancerIP = s.loadBalancerIP
	}
	switch a := corev1.ServiceAffinity(s.affinity); a {
	case "":
	case corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP:
		out.Spec.SessionAffinity = a
	default:
		return nil, fmt.Errorf("unknown session affinity: %s", s.affinity)
	}
	return out, nil
}

func (s *spec) selectorFor(f *facts) (map[string]string, error) {
	if s.selector != "" {
		return parseLabels(s.selector)
	}
	if f.noSelector != nil {
		return nil, fmt.Errorf("couldn't retrieve selectors via --selector flag or introspection: %w", f.noSelector)
	}
	return f.selector, nil
}

// ports are those of --port, or all of the object; several are named port-1, port-2, ….
func (s *spec) ports(f *facts) ([]corev1.ServicePort, error) {
	var out []corev1.ServicePort
	numbers := f.ports
	if s.port != "" {
		numbers = nil
		for _, text := range strings.Split(s.port, ",") {
			n, err := strconv.Atoi(text)
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, port{int32(n), f.protocolOf(int32(n))})
		}
	}
	if len(numbers) == 0 {
		return nil, errors.New("couldn't find port via --port flag or introspection")
	}
	for i, n := range numbers {
		p := corev1.ServicePort{Port: n.number, Protocol: n.protocol, TargetPort: intstr.FromInt32(n.number)}
		if s.protocol != "" {
			p.Protocol = corev1.Protocol(s.protocol)
		}
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if s.targetPort != "" {
			p.TargetPort = intstr.Parse(s.targetPort)
		}
		if len(numbers) > 1 {
			p.Name = fmt.Sprintf("port-%d", i+1)
		}
		out = append(out, p)
	}
	return out, nil
}

// protocolOf is the protocol the object speaks on port n, "" if it does not say.
func (f *facts) protocolOf(n int32) corev1.Protocol {
	for _, p := range f.ports {
		if p.number == n {
			return p.protocol
		}
	}
	return ""
}
