package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/safetext"
)

// etcdOverride is one value of --etcd-servers-overrides: the etcd of a resource, or of all resources of a group.
type etcdOverride struct {
	group, resource string // the resource is allResources for the whole group
	servers         []string
}

const allResources = "*"

// parseOverrides reads the values of the flag.
func parseOverrides(values []string) ([]etcdOverride, error) {
	var out []etcdOverride
	for _, value := range values {
		if value == "" {
			continue
		}
		which, list, _ := strings.Cut(value, "#")
		group, resource, isPath := strings.Cut(which, "/")
		servers := strings.Split(list, ";")
		if !isPath || resource == "" || strings.Contains(resource, "/") || strings.Contains(list, "#") ||
			slices.Contains(servers, "") {
			return nil, fmt.Errorf("--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, semicolon separated (not %q)",
				safetext.URLs(value))
		}
		out = append(out, etcdOverride{group, resource, servers})
	}
	return out, nil
}

// place returns the etcd servers of each key prefix that is not in the servers of --etcd-servers. An override of a
// resource counts more than one of its group, and a later one more than an earlier one.
func place(overrides []etcdOverride, rows []resources.Row) (map[string][]string, error) {
	out := map[string][]string{}
	var errs []error
	for _, wholeGroups := range []bool{true, false} {
		for _, o := range overrides {
			if (o.resource == allResources) != wholeGroups {
				continue
			}
			prefixes := o.prefixes(rows)
			if len(prefixes) == 0 {
				errs = append(errs, fmt.Errorf("--etcd-servers-overrides: %s/%s: this server stores no such resource of its own (custom resources, CustomResourceDefinitions and APIServices stay in --etcd-servers, and events are /events)",
					o.group, o.resource))
			}
			for _, prefix := range prefixes {
				out[prefix] = o.servers
			}
		}
	}
	return out, errors.Join(errs...)
}

// isStoredAsJSON reports whether a group is one of those whose servers in kube-apiserver have storages of their own.
func isStoredAsJSON(group string) bool {
	return group == apiextensionsv1.GroupName || group == apiregistrationv1.GroupName
}

// prefixes returns the key prefixes that the override moves. With the whole core group goes what no resource shows:
// upstream keeps it there, and both find it where the other has put it.
func (o *etcdOverride) prefixes(rows []resources.Row) []string {
	if isStoredAsJSON(o.group) { // upstream keeps these in --etcd-servers, whatever the flag says
		return nil
	}
	var out []string
	for i := range rows {
		row := &rows[i]
		if row.GVK.Group == o.group && (row.Resource == o.resource || o.resource == allResources) && !row.NotStored &&
			row.Stored == nil {
			out = append(out, registry.Prefix(row))
		}
	}
	if o.group == "" && o.resource == allResources {
		out = append(out, "/registry/masterleases/", "/registry/ranges/")
	}
	return out
}
