package set

import (
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/resource"
)

// podSpec returns the spec of a pod, or that of the pod template of a workload, wherever the kind has it: custom
// resources with a template work, too. Changes to it change u.
func podSpec(i *resource.Info, u *unstructured.Unstructured) (map[string]any, error) {
	for _, p := range [][]string{{"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"},
		{"spec"}} {
		if len(p) == 1 && u.GetKind() != "Pod" {
			continue
		}
		if m, ok := lookup(u.Object, p); ok {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%s/%s the object is not a pod or does not have a pod template: *%s.%s",
		i.Mapping.Resource.Resource, i.Name, i.Mapping.GroupVersionKind.Version, u.GetKind())
}

// lookup follows keys without copying.
func lookup(m map[string]any, keys []string) (map[string]any, bool) {
	for _, k := range keys {
		next, ok := m[k].(map[string]any)
		if !ok {
			return nil, false
		}
		m = next
	}
	return m, true
}

// containers returns the containers in a list of the pod's spec ("containers", "initContainers"); changes to them
// change the spec.
func containers(spec map[string]any, list string) []map[string]any {
	items, _ := spec[list].([]any)
	var out []map[string]any
	for _, c := range items {
		if m, ok := c.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// matching returns the containers whose name matches pattern ("*" stands for any characters).
func matching(all []map[string]any, pattern string) []map[string]any {
	var out []map[string]any
	for _, c := range all {
		name, _ := c["name"].(string)
		if ok, err := path.Match(pattern, name); ok && err == nil {
			out = append(out, c)
		}
	}
	return out
}
