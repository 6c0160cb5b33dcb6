package fieldmanager

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"bonsai/api/resources"
)

// strippedFields are the fields that no manager owns: they identify the object, or only the server sets them.
//
// They are those that upstream's library strips. An owner of metadata.name could never give it up, and one of
// resourceVersion would change with every write, so each write would change its writer's entry.
func strippedFields() []string {
	return []string{
		"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.creationTimestamp", "metadata.selfLink",
		"metadata.uid", "metadata.clusterName", "metadata.generation", "metadata.managedFields",
		"metadata.resourceVersion",
	}
}

// resetFields are the paths that a write through a subresource ("" for the resource) leaves unchanged, whatever the
// client sends, so that the writer does not come to own them. The strategy names them. By default, they are the status
// for the resource if it has a status subresource, and the spec for the status subresource.
//
// Upstream calls them reset fields. Without them, a client that sends the whole object to the status subresource would
// own the spec that it read, and block the next apply of the spec with a conflict.
func resetFields(row *resources.Row, subresource string) []string {
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

// pathSet returns the set of dotted paths.
func pathSet(paths []string) *fieldpath.Set {
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
