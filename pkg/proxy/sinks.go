package proxy

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"bonsai/pkg/apiclient"
)

// Services feeds services into s.
func (s *State) Services() apiclient.Sink[*corev1.Service] {
	set := func(o *corev1.Service) {
		if svc, ok := serviceOf(o); ok {
			s.setServiceLocked(svc)
		} else {
			s.dropServiceLocked(svc.Name)
		}
	}
	return sink(s, "services", set,
		func(o *corev1.Service) { s.dropServiceLocked(Name{Namespace: o.Namespace, Name: o.Name}) },
		func(all []*corev1.Service) {
			left := map[Name]bool{}
			for _, o := range all {
				left[Name{Namespace: o.Namespace, Name: o.Name}] = true
			}
			for name := range s.services {
				if !left[name] {
					s.dropServiceLocked(name)
				}
			}
		})
}

// Slices feeds endpoint slices into s.
func (s *State) Slices() apiclient.Sink[*discoveryv1.EndpointSlice] {
	set := func(o *discoveryv1.EndpointSlice) {
		if sl, ok := sliceOf(o); ok {
			s.noteArrivalsLocked(o, &sl)
			s.setSliceLocked(sl)
		} else {
			s.dropSliceLocked(sl.Key)
		}
	}
	return sink(s, "slices", set,
		func(o *discoveryv1.EndpointSlice) { s.dropSliceLocked(Name{Namespace: o.Namespace, Name: o.Name}) },
		func(all []*discoveryv1.EndpointSlice) {
			left := map[Name]bool{}
			for _, o := range all {
				left[Name{Namespace: o.Namespace, Name: o.Name}] = true
			}
			for key := range s.owners {
				if !left[key] {
					s.dropSliceLocked(key)
				}
			}
		})
}

// Nodes feeds nodes into s.
func (s *State) Nodes() apiclient.Sink[*corev1.Node] {
	return sink(s, "nodes",
		func(o *corev1.Node) { s.setNodeLocked(nodeOf(o)) },
		func(o *corev1.Node) { s.dropNodeLocked(o.Name) },
		func(all []*corev1.Node) {
			left := map[string]bool{}
			for _, o := range all {
				left[o.Name] = true
			}
			for name := range s.nodes {
				if !left[name] {
					s.dropNodeLocked(name)
				}
			}
		})
}

// ServiceCIDRs feeds the ranges of cluster IPs into s.
func (s *State) ServiceCIDRs() apiclient.Sink[*networkingv1.ServiceCIDR] {
	return sink(s, "servicecidrs",
		func(o *networkingv1.ServiceCIDR) { s.setServiceCIDRLocked(o.Name, prefixes(o.Spec.CIDRs)) },
		func(o *networkingv1.ServiceCIDR) { s.setServiceCIDRLocked(o.Name, nil) },
		func(all []*networkingv1.ServiceCIDR) {
			left := map[string]bool{}
			for _, o := range all {
				left[o.Name] = true
			}
			for name := range s.serviceCIDRs {
				if !left[name] {
					s.setServiceCIDRLocked(name, nil)
				}
			}
		})
}

// sink puts locks around set, drop and forget (which drops what a complete list has not) and notes complete lists.
func sink[T any](s *State, kind string, set, drop func(T), forget func([]T)) apiclient.Sink[T] {
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
		forget(all)
		for _, o := range all {
			set(o)
		}
		s.listedLocked(kind)
	}
	return apiclient.SinkFuncs[T]{ReplaceFunc: replace, SetFunc: locked(set), DeleteFunc: locked(drop)}
}
