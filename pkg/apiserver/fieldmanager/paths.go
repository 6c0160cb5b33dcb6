package fieldmanager

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"bonsai/api/resources"
)

// nobodys are the fields that no manager owns: they say which object it is, or are the server's.
func nobodys() []string {
	return []string{"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.creationTimestamp", "metadata.selfLink", "metadata.uid",
		"metadata.clusterName", "metadata.generation", "metadata.managedFields", "metadata.resourceVersion"}
}

// resets are the paths that a write through a subresource ("" is the resource itself) leaves as they are, whatever it says of
// them: nobody comes to own a field so. They are what the strategy says, or else the status, which only the status
// subresource writes, and there the spec.
func resets(row *resources.Row, subresource string) []string {
	s, hasStatus := &row.Strategy, false
	for i := range row.Subresources {
		sub := &row.Subresources[i]
		if sub.Name == subresource && sub.Strategy != nil {
			s = sub.Strategy
		}
		hasStatus = hasStatus || sub.Name == "status"
	}
	switch {
	case s.Resets != nil:
		return s.Resets
	case subresource == "" && hasStatus:
		return []string{"status"}
	case subresource == "status":
		return []string{"spec"}
	}
	return nil
}

func setOf(paths []string) *fieldpath.Set {
	set := fieldpath.NewSet()
	for _, p := range paths {
		var path fieldpath.Path
		for name := range strings.SplitSeq(p, ".") {
			path = append(path, fieldpath.PathElement{FieldName: &name})
		}
		set.Insert(path)
	}
	return set
}
