package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ourDiscovery is the recorded answers of pkg/apiserver/discovery, which its tests hold equal to what we serve.
const ourDiscovery = "pkg/apiserver/discovery/testdata"

// resourcesSection has the resources and subresources of discovery. The aggregated document of a release has all
// groups but core, whose resources are in a file of their own.
func resourcesSection(root fs.FS, current, next release) (section, error) {
	s := section{title: "Resources", against: "what we serve (" + ourDiscovery + ")"}
	ours := facts{}
	for _, file := range []string{"api.json", "apis.json"} {
		if err := addFile(ours, root, ourDiscovery+"/"+file, facts.aggregated); err != nil {
			return s, err
		}
	}
	old, err := served(current)
	if err != nil {
		return s, err
	}
	all, err := served(next)
	if err != nil {
		return s, err
	}
	found, known := compare(ours, old, all)
	s.known = known
	s.tasks = words{"Serve", "Change", "Stop serving"}.lines(fold(found, "/"), nil)
	for _, version := range without(old.versions(), ours.versions(), all.versions()) {
		s.tasks = append(s.tasks, fmt.Sprintf("Remove `%s` from `notBuilt` of pkg/apiserver/runtimeconfig", version))
	}
	s.remarks = []string{"Kubernetes serves alpha versions, and beta versions that are new, only if --runtime-config asks " +
		"for them: discovery of its files has all of them. A version that is not built goes into `notBuilt` of " +
		"pkg/apiserver/runtimeconfig."}
	return s, nil
}

// versions are the groups' versions that have any of the resources.
func (f facts) versions() facts {
	out := facts{}
	for name := range f {
		version, _, _ := strings.Cut(name, " ")
		out[version] = ""
	}
	return out
}

// served are the resources of a release.
func served(r release) (facts, error) {
	f := facts{}
	return f, errors.Join(r.add(f, "api/discovery/aggregated_v2.json", facts.aggregated),
		r.add(f, "api/discovery/api__v1.json", facts.list))
}

// aggregated adds the resources of a document of apidiscovery.k8s.io/v2.
func (f facts) aggregated(data []byte) error {
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, g := range list.Items {
		for _, v := range g.Versions {
			at := metav1.GroupVersion{Group: g.Name, Version: v.Version}.String() + " "
			for _, r := range v.Resources {
				f[at+r.Resource] = resourceText(string(r.Scope), responseKind(r.ResponseKind), r.Verbs, r.ShortNames,
					r.Categories)
				for _, sub := range r.Subresources {
					f[at+r.Resource+"/"+sub.Subresource] = resourceText(string(r.Scope), responseKind(sub.ResponseKind),
						sub.Verbs, nil, nil)
				}
			}
		}
	}
	return nil
}

// list adds the resources of core, which an APIResourceList has.
func (f facts) list(data []byte) error {
	var list metav1.APIResourceList
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, r := range list.APIResources {
		scope := string(apidiscoveryv2.ScopeCluster)
		if r.Namespaced {
			scope = string(apidiscoveryv2.ScopeNamespace)
		}
		f[list.GroupVersion+" "+r.Name] = resourceText(scope, r.Kind, r.Verbs, r.ShortNames, r.Categories)
	}
	return nil
}

// resourceText is what discovery says about a resource: "Namespaced Pod: get,list (po; all)".
func resourceText(scope, kind string, verbs, short, categories []string) string {
	text := scope + " " + kind + ": " + strings.Join(slices.Sorted(slices.Values(verbs)), ",")
	if len(short) > 0 || len(categories) > 0 {
		text += fmt.Sprintf(" (%s; %s)", strings.Join(short, ","),
			strings.Join(slices.Sorted(slices.Values(categories)), ","))
	}
	return text
}

func responseKind(gvk *metav1.GroupVersionKind) string {
	if gvk == nil {
		return ""
	}
	return gvk.Kind
}
