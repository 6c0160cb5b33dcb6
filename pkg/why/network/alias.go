package network

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// clusterDomain is the domain of nearly all clusters: no API says it.
const clusterDomain = "cluster.local"

// externalName explains a Service that is another name of something: an address, or a name that leads nowhere.
func (q *inquiry) externalName(ctx context.Context) (why.Answer, error) {
	target := strings.TrimSuffix(q.service.Spec.ExternalName, ".")
	a := why.Answer{Subject: q.self, Well: true,
		State: fmt.Sprintf("%s is another name for %s in DNS; no traffic goes through the cluster.", q.self,
			q.service.Spec.ExternalName)}
	seen := why.See(q.self, ".spec.externalName", q.service.Spec.ExternalName)
	inside, ok := strings.CutSuffix(target, ".svc."+clusterDomain)
	short, isShort := strings.CutSuffix(target, ".svc")
	switch {
	case isAddress(target):
		a.Causes = []why.Cause{{Code: "ExternalNameIsAddress",
			Text: fmt.Sprintf("Its externalName %s is an address. DNS answers with a name of these digits, which "+
				"nobody can look up.", target), Evidence: []why.Evidence{seen},
			Fixes: []why.Fix{{Text: "Use a Service without selector, with an EndpointSlice that has the address."}}}}
	case strings.ContainsAny(target, ":/"):
		a.Causes = []why.Cause{{Code: "ExternalNameIsNoName", Evidence: []why.Evidence{seen},
			Text: fmt.Sprintf("Its externalName %s is no name of DNS: it has no place for ports, schemes or paths.",
				target)}}
	case ok:
		parts := strings.Split(inside, ".")
		if len(parts) < 2 {
			break
		}
		causes, err := q.alias(ctx, parts[len(parts)-2], parts[len(parts)-1], seen)
		if err != nil {
			return a, err
		}
		a.Causes = causes
	case isShort, !strings.Contains(target, "."):
		whole := target + "." + clusterDomain
		if !isShort {
			whole = target + "." + q.service.Namespace + ".svc." + clusterDomain
		}
		a.Causes = []why.Cause{{Code: "ExternalNameIncomplete", Evidence: []why.Evidence{seen},
			Text: fmt.Sprintf("Its externalName %s is not complete: DNS takes it as it is, and adds no namespace and no "+
				"domain of the cluster.", target),
			Fixes: []why.Fix{{Text: "Write the whole name.", Command: why.Command(
				"kubectl patch service %s%s --type=merge -p %s", q.service.Name, q.self.Flag(),
				fmt.Sprintf(`{"spec":{"externalName":%q}}`, whole))}}}}
		if name, namespace, found := strings.Cut(short, "."); isShort && found {
			causes, err := q.alias(ctx, name, namespace, seen)
			if err != nil {
				return a, err
			}
			a.Causes = append(a.Causes, causes...)
		}
	}
	a.Well = len(a.Causes) == 0
	return a, nil
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// alias explains an alias of a Service of this cluster: it is not there, or not well.
func (q *inquiry) alias(ctx context.Context, name, namespace string, seen why.Evidence) ([]why.Cause, error) {
	o := why.Object{Kind: "Service", Namespace: namespace, Name: name}
	s, known := why.Get[corev1.Service](ctx, q.World, namespace, name)
	switch {
	case s == nil && !known:
		return nil, nil
	case s == nil:
		cause := why.Cause{Code: "ExternalNameNowhere",
			Text: fmt.Sprintf("It leads to Service %s of namespace %s, which does not exist: its name does not resolve.",
				name, namespace),
			Evidence: []why.Evidence{seen, why.Absent(o.Kind, o.Namespace, o.Name)}}
		if there := q.services(ctx, namespace, name); len(there) > 0 {
			cause.Text += fmt.Sprintf(" There is %s.", why.And(there))
			cause.Fixes = []why.Fix{{Text: "Write that name.", Command: why.Command(
				"kubectl patch service %s%s --type=merge -p %s", q.service.Name, q.self.Flag(),
				fmt.Sprintf(`{"spec":{"externalName":%q}}`, there[0]+"."+namespace+".svc."+clusterDomain))}}
		}
		return []why.Cause{cause}, nil
	}
	because, err := q.Causes(ctx, o)
	if err != nil || len(because) == 0 {
		return nil, err
	}
	return []why.Cause{{Code: "AliasedNotWell", Text: fmt.Sprintf("%s, which it leads to, is not well.", o),
		Evidence: []why.Evidence{seen}, Because: because}}, nil
}

// services are the Services of a namespace whose names are like one that is not there: by spelling, or as a part.
func (q *inquiry) services(ctx context.Context, namespace, name string) (names []string) {
	all, _ := why.List[corev1.Service](ctx, q.World, namespace, nil)
	for _, s := range all {
		if s.Name != q.service.Name && (alike(s.Name, name) || strings.HasPrefix(s.Name, name) ||
			strings.HasPrefix(name, s.Name)) {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}
