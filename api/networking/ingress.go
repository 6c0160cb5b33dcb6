package networking

import (
	"strconv"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/api/validate"
)

// ClassAnnotation named an Ingress's class before spec.ingressClassName did. Nobody checks it.
const ClassAnnotation = "kubernetes.io/ingress.class"

func ingressRow() resources.Row {
	return resources.Row{
		GVK: networkingv1.SchemeGroupVersion.WithKind("Ingress"), Resource: "ingresses", Singular: "ingress",
		Namespaced:   true,
		ShortNames:   []string{"ing"},
		StoragePath:  "ingress",
		New:          resources.Make[networkingv1.Ingress],
		Strategy:     ingressStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Status(ingressStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Class",
				"The name of the IngressClass resource that should be used for additional configuration"),
			resources.Column("Hosts", "Hosts that incoming requests are matched against before the ingress rule"),
			resources.Column("Address", "Address is a list containing ingress points for the load-balancer"),
			resources.Column("Ports", "Ports of TLS configurations that open"),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(ingressCells),
	}
}

func ingressStrategy() resources.Typed[*networkingv1.Ingress] {
	return resources.Typed[*networkingv1.Ingress]{
		PrepareCreate:  func(i *networkingv1.Ingress) { i.Status = networkingv1.IngressStatus{} },
		PrepareUpdate:  func(obj, old *networkingv1.Ingress) { obj.Status = *old.Status.DeepCopy() },
		Validate:       validateIngress,
		ValidateUpdate: validateIngressUpdate,
		Warnings:       ingressWarnings,
		SpecChanged: func(obj, old *networkingv1.Ingress) bool {
			return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
		},
	}
}

func ingressStatusStrategy() resources.Typed[*networkingv1.Ingress] {
	s := ingressStrategy()
	s.PrepareUpdate = func(obj, old *networkingv1.Ingress) { obj.Spec = *old.Spec.DeepCopy() }
	s.ValidateUpdate = validateIngressStatusUpdate
	s.Warnings = ingressStatusWarnings
	return s
}

// ingressWarnings tells who makes an Ingress of the way that classes are named by now.
func ingressWarnings(i, old *networkingv1.Ingress) []string {
	if _, annotated := i.Annotations[ClassAnnotation]; annotated && i.Spec.IngressClassName == nil && old == nil {
		return []string{`annotation "` + ClassAnnotation +
			`" is deprecated, please use 'spec.ingressClassName' instead`}
	}
	return nil
}

// ingressStatusWarnings names addresses of load balancers that are not as they would be shown.
func ingressStatusWarnings(i, _ *networkingv1.Ingress) []string {
	var w []string
	for n, p := range i.Status.LoadBalancer.Ingress {
		w = append(w, validate.IPWarnings(field.NewPath("status", "loadBalancer", "ingress").Index(n), p.IP)...)
	}
	return w
}

func ingressCells(i *networkingv1.Ingress, now time.Time) []any {
	class := "<none>"
	if n := i.Spec.IngressClassName; n != nil {
		class = *n
	}
	ports := "80"
	if len(i.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	return []any{i.Name, class, hostsText(i.Spec.Rules), addressesText(i.Status.LoadBalancer.Ingress), ports,
		resources.Age(i.CreationTimestamp, now)}
}

// shownHosts is how many hosts a table lists before it only counts the rest.
const shownHosts = 3

func hostsText(rules []networkingv1.IngressRule) string {
	var hosts []string
	for _, r := range rules {
		if r.Host == "" {
			continue
		}
		if len(hosts) == shownHosts { // rules without a host are counted as well, as upstream counts
			return strings.Join(hosts, ",") + " + " + strconv.Itoa(len(rules)-shownHosts) + " more..."
		}
		hosts = append(hosts, r.Host)
	}
	if len(hosts) == 0 {
		return "*"
	}
	return strings.Join(hosts, ",")
}

// addressesText lists the addresses of the load balancer, each once, in order.
func addressesText(points []networkingv1.IngressLoadBalancerIngress) string {
	found := sets.New[string]()
	for _, p := range points {
		if p.IP != "" {
			found.Insert(p.IP)
		} else if p.Hostname != "" {
			found.Insert(p.Hostname)
		}
	}
	return strings.Join(sets.List(found), ",")
}
