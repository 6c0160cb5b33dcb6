package network

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"bonsai/pkg/why"
)

// defaultClass is the annotation of the IngressClass that Ingresses without a class get.
const defaultClass = "ingressclass.kubernetes.io/is-default-class"

// Ingress explains an Ingress: its class, its backends, its certificates, its address.
func Ingress(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	in, known := why.Get[networkingv1.Ingress](ctx, c.World, o.Namespace, o.Name)
	if in == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf("networking.k8s.io", "Ingress", in)
	a := why.Answer{Subject: self}
	if in.DeletionTimestamp != nil {
		a.State = fmt.Sprintf("%s is being deleted.", self)
		var err error
		a.Causes, err = why.Finalizers(ctx, c, self, in)
		return a, err
	}
	for _, b := range backends(in) {
		causes, err := backend(ctx, c, in, self, b)
		if err != nil {
			return a, err
		}
		a.Causes = append(a.Causes, causes...)
	}
	for _, t := range in.Spec.TLS {
		if t.SecretName == "" {
			continue
		}
		secret, known := why.Get[corev1.Secret](ctx, c.World, in.Namespace, t.SecretName)
		if secret == nil && known {
			a.Causes = append(a.Causes, why.Cause{Code: "SecretMissing",
				Text: fmt.Sprintf("The Secret %s with its certificate does not exist in namespace %s.",
					t.SecretName, in.Namespace),
				Evidence: []why.Evidence{why.Absent("Secret", in.Namespace, t.SecretName),
					why.See(self, ".spec.tls[*].secretName", t.SecretName)}})
		} else if secret != nil && secret.Type != corev1.SecretTypeTLS {
			a.Causes = append(a.Causes, why.Cause{Code: "SecretNotTLS",
				Text: fmt.Sprintf("The Secret %s with its certificate is of type %s, not %s.", t.SecretName,
					secret.Type,
					corev1.SecretTypeTLS),
				Evidence: []why.Evidence{why.See(why.ObjectOf("", "Secret", secret), ".type", string(secret.Type))}})
		}
	}
	a.Causes = append(a.Causes, sameHost(ctx, c, in)...)
	// Last, since the others are true whatever controller comes.
	a.Causes = append(a.Causes, class(ctx, c, in, self)...)
	if len(a.Causes) == 0 && len(in.Status.LoadBalancer.Ingress) == 0 {
		a.Causes = append(a.Causes, why.Cause{Code: "NoAddress",
			Text: "Its class and its backends are well, but no controller has given it an address. Does the " +
				"controller run?",
			Evidence: []why.Evidence{why.See(self, ".status.loadBalancer.ingress", "empty")}})
	}
	if a.Well = len(a.Causes) == 0; a.Well {
		a.State = fmt.Sprintf("%s has an address, and its backends are well.", self)
	} else {
		a.State = fmt.Sprintf("%s does not work as it should.", self)
	}
	return a, nil
}

// canary is the annotation of an Ingress that shares the routes of another one on purpose.
const canary = "nginx.ingress.kubernetes.io/canary"

// sameHost explains hosts and paths that an older Ingress of the same class has, too: controllers serve one of the two.
func sameHost(ctx context.Context, c *why.Case, in *networkingv1.Ingress) (causes []why.Cause) {
	all, _ := why.List[networkingv1.Ingress](ctx, c.World, "", nil)
	for _, other := range all {
		if other.Namespace == in.Namespace && other.Name == in.Name || deref(other.Spec.IngressClassName) !=
			deref(in.Spec.IngressClassName) || other.CreationTimestamp.After(in.CreationTimestamp.Time) ||
			in.Annotations[canary] == "true" || other.Annotations[canary] == "true" {
			continue
		}
		for _, mine := range routes(in) {
			if !slices.Contains(routes(other), mine) {
				continue
			}
			o := why.ObjectOf(networkingv1.GroupName, "Ingress", other)
			causes = append(causes, why.Cause{Code: "RouteTaken",
				Text: fmt.Sprintf("%s has the route %s, too: controllers serve one of the two, in most the older one.", o,
					mine), Evidence: []why.Evidence{why.See(o, ".spec.rules[*].host", mine, other.CreationTimestamp)}})
			break
		}
		if len(causes) == maxRoutes {
			break
		}
	}
	return causes
}

// maxRoutes is how many other Ingresses with a route of this one are named.
const maxRoutes = 5

// routes are the hosts and paths of an Ingress.
func routes(in *networkingv1.Ingress) (list []string) {
	for _, r := range in.Spec.Rules {
		if r.HTTP == nil {
			continue
		}
		for _, p := range r.HTTP.Paths {
			list = append(list, r.Host+cmp.Or(p.Path, "/"))
		}
	}
	return list
}

// class explains an Ingress that no controller serves.
func class(ctx context.Context, c *why.Case, in *networkingv1.Ingress, self why.Object) []why.Cause {
	classes, complete := why.List[networkingv1.IngressClass](ctx, c.World, "", nil)
	if !complete {
		return nil
	}
	var names []string
	hasDefault := false
	for _, k := range classes {
		names = append(names, k.Name)
		hasDefault = hasDefault || k.Annotations[defaultClass] == "true"
		if in.Spec.IngressClassName != nil && *in.Spec.IngressClassName == k.Name {
			return nil
		}
	}
	if in.Spec.IngressClassName != nil {
		name := *in.Spec.IngressClassName
		return []why.Cause{{Code: "IngressClassMissing",
			Text: fmt.Sprintf("Its IngressClass %s does not exist. There are: %s.", name, why.And(names)),
			Evidence: []why.Evidence{why.Absent("IngressClass", "", name), why.See(self, ".spec.ingressClassName",
				name)}}}
	}
	if in.Annotations["kubernetes.io/ingress.class"] != "" || hasDefault && in.Status.LoadBalancer.Ingress != nil {
		return nil
	}
	cause := why.Cause{Code: "NoIngressClass",
		Text: fmt.Sprintf("It names no IngressClass, so that no controller takes it. There are: %s.",
			why.And(names)),
		Evidence: []why.Evidence{why.See(self, ".spec.ingressClassName", "not set")}}
	if len(names) > 0 {
		cause.Fixes = []why.Fix{{Text: "Set its class.", Command: why.Command(
			`kubectl patch ingress %s%s --type=merge -p %s`, in.Name, self.Flag(),
			fmt.Sprintf(`{"spec":{"ingressClassName":%q}}`, names[0]))}}
	} else {
		cause.Fixes = []why.Fix{{Text: "Install an ingress controller."}}
	}
	return []why.Cause{cause}
}

// backends are the Services of an Ingress, each once.
func backends(in *networkingv1.Ingress) (list []networkingv1.IngressServiceBackend) {
	seen := map[networkingv1.IngressServiceBackend]bool{}
	add := func(b *networkingv1.IngressBackend) {
		if b != nil && b.Service != nil && !seen[*b.Service] {
			seen[*b.Service] = true
			list = append(list, *b.Service)
		}
	}
	add(in.Spec.DefaultBackend)
	for _, r := range in.Spec.Rules {
		if r.HTTP != nil {
			for i := range r.HTTP.Paths {
				add(&r.HTTP.Paths[i].Backend)
			}
		}
	}
	return list
}

// backend explains a Service that an Ingress leads to.
func backend(ctx context.Context, c *why.Case, in *networkingv1.Ingress, self why.Object,
	b networkingv1.IngressServiceBackend) ([]why.Cause, error) {
	s, known := why.Get[corev1.Service](ctx, c.World, in.Namespace, b.Name)
	if s == nil {
		if !known {
			return nil, nil
		}
		return []why.Cause{{Code: "BackendMissing",
			Text: fmt.Sprintf("The Service %s, which it leads to, does not exist in namespace %s.", b.Name,
				in.Namespace),
			Evidence: []why.Evidence{why.Absent("Service", in.Namespace, b.Name)}}}, nil
	}
	o := why.ObjectOf("", "Service", s)
	var ports []string
	found := false
	for _, p := range s.Spec.Ports {
		text := fmt.Sprint(p.Port)
		if p.Name != "" {
			text += " (" + p.Name + ")"
		}
		ports = append(ports, text)
		found = found || b.Port.Name != "" && b.Port.Name == p.Name || b.Port.Name == "" && b.Port.Number == p.Port
	}
	if !found {
		want := b.Port.Name
		if want == "" {
			want = fmt.Sprint(b.Port.Number)
		}
		return []why.Cause{{Code: "BackendPortMissing",
			Text: fmt.Sprintf("It leads to port %s of Service %s, which has no such port. It has: %s.", want, b.Name,
				why.And(ports)),
			Evidence: []why.Evidence{why.See(o, ".spec.ports", why.And(ports)),
				why.See(self, ".spec.rules[*].http.paths[*].backend", b.Name+":"+want)},
			Fixes: []why.Fix{{Text: fmt.Sprintf("Let it lead to a port of the Service: %s.", why.And(ports)),
				Command: "kubectl edit " + self.Arg() + self.Flag()}}}}, nil
	}
	because, err := c.Causes(ctx, o)
	if err != nil || len(because) == 0 {
		return nil, err
	}
	return []why.Cause{{Code: "BackendNotWell", Text: fmt.Sprintf("The Service %s, which it leads to, is not well.",
		b.Name),
		Because: because, Evidence: []why.Evidence{why.See(self, ".spec.rules[*].http.paths[*].backend", b.Name)}}}, nil
}
