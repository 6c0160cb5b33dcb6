package aggregator

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/api/apiregistration"
	"bonsai/pkg/apiserver/catalog"
)

// The label of APIServices that servers register for what they serve themselves, and its values: kept as it was
// registered, or as it was only at the start of a server, so that an administrator may change it after.
const (
	automanaged        = "kube-aggregator.kubernetes.io/automanaged"
	automanagedAlways  = "true"
	automanagedOnStart = "onstart"
)

// registration is an APIService that is to be there.
type registration struct {
	spec   v1.APIServiceSpec
	manage string // the label's value
}

func nameOf(gv schema.GroupVersion) string { return gv.Version + "." + gv.Group }

// registrations are those of all that is served, but the APIServices themselves: by name.
func registrations(now *catalog.Snapshot) map[string]registration {
	out := map[string]registration{}
	for _, gv := range now.GroupVersions() {
		if gv.Group == v1.GroupName {
			continue
		}
		r := registration{manage: automanagedAlways}
		p := apiregistration.CustomResources()
		if slices.ContainsFunc(now.Routes(gv), func(rt *catalog.Route) bool { return !rt.Row.Dynamic() }) {
			r.manage, p = automanagedOnStart, apiregistration.BuiltIn(gv)
		}
		r.spec = v1.APIServiceSpec{Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: p.Group,
			VersionPriority: p.Version}
		out[nameOf(gv)] = r
	}
	return out
}

// change is what is to be done to one APIService.
type change struct {
	name string
	verb verb
}

type verb int

const (
	create verb = iota
	update
	remove
)

// changes returns what leads from the APIServices that exist to the wanted ones. Those that are managed only at the
// start need nothing more once they are in settled. complete says that nothing is missing from wanted: then what is not
// wanted goes, and what is managed only at the start goes only while starting.
func changes(wanted map[string]registration, have map[string]*v1.APIService, settled map[string]bool, complete,
	starting bool) []change {
	var out []change
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		w, is := wanted[name], have[name]
		started := w.manage == automanagedOnStart && settled[name]
		switch {
		case started:
		case is == nil:
			out = append(out, change{name, create})
		// somebody's own
		case is.Labels[automanaged] != automanagedAlways && is.Labels[automanaged] != automanagedOnStart:
		case is.Labels[automanaged] != w.manage || !sameSpec(&is.Spec, &w.spec):
			out = append(out, change{name, update})
		}
	}
	if !complete {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, ok := wanted[name]; ok {
			continue
		}
		if m := have[name].Labels[automanaged]; m == automanagedAlways || m == automanagedOnStart && starting {
			out = append(out, change{name, remove})
		}
	}
	return out
}

func sameSpec(a, b *v1.APIServiceSpec) bool {
	return a.Service == nil && b.Service == nil && a.Group == b.Group && a.Version == b.Version &&
		a.GroupPriorityMinimum == b.GroupPriorityMinimum &&
		a.VersionPriority == b.VersionPriority && a.InsecureSkipTLSVerify == b.InsecureSkipTLSVerify &&
		len(a.CABundle) == 0 && len(b.CABundle) == 0
}
