package apiregistration

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Priority is the place of a group version among all: groups with a higher Group come first, in one of them versions
// with a higher Version.
type Priority struct{ Group, Version int32 }

// CustomResources is the place of every group version of a CustomResourceDefinition.
func CustomResources() Priority { return Priority{Group: 1000, Version: 100} }

// BuiltIn is the place of a group version that the server serves itself: upstream's numbers. A version that upstream
// does not serve by default comes after those that it does. This group has no APIService, and is before all others.
func BuiltIn(gv schema.GroupVersion) Priority {
	if gv.Group == v1.GroupName {
		return Priority{Group: maxGroupPriority + 1, Version: 15}
	}
	group, ok := builtInGroups()[gv.Group]
	if !ok {
		return CustomResources()
	}
	p := Priority{Group: group, Version: 15}
	switch {
	case gv.Group == "":
		p.Version = 1
	case gv == schema.GroupVersion{Group: "autoscaling", Version: "v2"}:
		p.Version = 30
	case gv.Group == "flowcontrol.apiserver.k8s.io", gv.Group == "resource.k8s.io":
		p.Version = 21
	}
	if gv.Version != "v1" && gv.Version != "v2" {
		p.Version = 9
	}
	return p
}

func builtInGroups() map[string]int32 {
	return map[string]int32{
		"": 18000, "apps": 17800, "events.k8s.io": 17750, "authentication.k8s.io": 17700, "authorization.k8s.io": 17600,
		"autoscaling": 17500,
		"batch":       17400, "certificates.k8s.io": 17300, "networking.k8s.io": 17200, "policy": 17100,
		"rbac.authorization.k8s.io": 17000,
		"storage.k8s.io":            16800, "admissionregistration.k8s.io": 16700, "apiextensions.k8s.io": 16700,
		"scheduling.k8s.io":   16600,
		"coordination.k8s.io": 16500, "node.k8s.io": 16300, "discovery.k8s.io": 16200, "resource.k8s.io": 16200,
		"flowcontrol.apiserver.k8s.io": 16100, "storagemigration.k8s.io": 15800,
	}
}
