package aggregator

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/api/apiregistration"
)

// APIServices is all APIServices at one moment. It does not change.
type ServiceIndex struct {
	generation uint64
	over       chan struct{} // closed when there is a newer one
	services   []*Service    // by name
	byVersion  map[schema.GroupVersion]*Service
	remotes    int
}

// Service is one APIService. It does not change.
type Service struct {
	// Object is as it is stored, and read-only.
	Object *v1.APIService
	remote *remote // nil: this server serves it
	seen   *finding
}

// finding is what this server has found out of a remote one. It does not change.
type finding struct {
	condition v1.APIServiceCondition
	// resources are what the server says it serves; nil while it is not available.
	resources []apidiscoveryv2.APIResourceDiscovery
}

// same reports whether two findings say the same; nil says nothing.
func (f *finding) same(as *finding) bool {
	return f != nil && as != nil && f.condition == as.condition &&
		apiequality.Semantic.DeepEqual(f.resources, as.resources)
}

// Generation grows with every change: what was made from an index is valid as long as the generation is the same.
func (s *ServiceIndex) Generation() uint64 { return s.generation }

// Services are all of them, by name. The slice is shared.
func (s *ServiceIndex) Services() []*Service { return s.services }

// Of returns the APIService of a group version that another server serves; nil if this one does, or nobody.
func (s *ServiceIndex) Of(gv schema.GroupVersion) *Service {
	if s.remotes == 0 {
		return nil
	}
	if found := s.byVersion[gv]; found != nil && found.remote != nil {
		return found
	}
	return nil
}

// GroupVersion is what is served.
func (s *Service) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: s.Object.Spec.Group, Version: s.Object.Spec.Version}
}

// Remote tells that another server serves it.
func (s *Service) Remote() bool { return s.remote != nil }

// Available reports whether requests are handed on. What this server has found out itself counts before what is
// written: that may be older, or another server's.
func (s *Service) Available() bool {
	if s.seen != nil {
		return s.seen.condition.Status == v1.ConditionTrue
	}
	return apiregistration.IsAvailable(s.Object)
}

// Resources are what a remote server said it serves; fresh is false while it is not available, or has not been asked.
func (s *Service) Resources() (resources []apidiscoveryv2.APIResourceDiscovery, fresh bool) {
	if s.seen == nil || s.seen.condition.Status != v1.ConditionTrue {
		return nil, false
	}
	return s.seen.resources, true
}
