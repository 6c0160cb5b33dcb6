package policy

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/network"
)

// Policies feeds policies into s.
func (s *State) Policies() apiclient.Sink[*networkingv1.NetworkPolicy] {
	return sink(s, "policies", func(yield func(network.Name)) {
		for namespace, ns := range s.namespaces {
			for name := range ns.policies {
				yield(network.Name{Namespace: namespace, Name: name})
			}
		}
	}, func(o *networkingv1.NetworkPolicy) { s.setPolicyLocked(nameOf(o), compile(o)) }, s.dropPolicyLocked)
}

// Pods feeds the pods of all nodes into s.
func (s *State) Pods() apiclient.Sink[*corev1.Pod] {
	return sink(s, "pods", func(yield func(network.Name)) {
		for name := range s.pods {
			yield(name)
		}
	}, func(o *corev1.Pod) {
		if f, ok := podOf(o, s.node); ok {
			s.setPodLocked(nameOf(o), f)
		} else {
			s.dropPodLocked(nameOf(o))
		}
	}, s.dropPodLocked)
}

// Namespaces feeds namespaces into s.
func (s *State) Namespaces() apiclient.Sink[*corev1.Namespace] {
	return sink(s, "namespaces", func(yield func(network.Name)) {
		for name, ns := range s.namespaces {
			if ns.known {
				yield(network.Name{Name: name})
			}
		}
	}, func(o *corev1.Namespace) { s.setNamespaceLocked(o.Name, o.Labels, true) },
		func(name network.Name) { s.setNamespaceLocked(name.Name, nil, false) })
}

func nameOf(o metav1.Object) network.Name {
	return network.Name{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// sink puts locks around set and drop, drops what a complete list has not, and notes complete lists. known yields what
// there is.
//
// A complete list is one change under one lock: no Take sees half of it.
func sink[T metav1.Object](s *State, kind string, known func(yield func(network.Name)), set func(T),
	drop func(network.Name)) apiclient.Sink[T] {
	locked := func(f func(T)) func(T) {
		return func(o T) {
			s.mu.Lock()
			defer s.mu.Unlock()
			f(o)
		}
	}
	replace := func(all []T) {
		s.mu.Lock()
		defer s.mu.Unlock()
		left := map[network.Name]bool{}
		for _, o := range all {
			left[nameOf(o)] = true
		}
		var gone []network.Name
		known(func(name network.Name) {
			if !left[name] {
				gone = append(gone, name)
			}
		})
		for _, name := range gone {
			drop(name)
		}
		for _, o := range all {
			set(o)
		}
		s.listedLocked(kind)
	}
	remove := func(o T) { drop(nameOf(o)) }
	return apiclient.SinkFuncs[T]{ReplaceFunc: replace, SetFunc: locked(set), DeleteFunc: locked(remove)}
}
