package rest

import (
	"slices"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/request"
)

// hasPlace reports whether info's path is one that the row has. Authorization was asked about Namespace, Resource,
// Subresource and Name, before anything was known of the row: a path is served only if these four, for this row's
// scope, say all that the path says. Otherwise a user who may do everything in one namespace could reach a cluster-wide
// object through a path below it.
func hasPlace(row *resources.Row, info *request.Info) bool {
	if slices.Contains(info.Parts[:min(len(info.Parts), 3)], "") {
		return false // a doubled slash: behind it stands no name and no subresource
	}
	if info.WatchPrefix && (info.Subresource != "" || row.NotStored) {
		return false // subresources are not watched, nor is what is not stored
	}
	switch {
	case row.Namespaced && info.InNamespace:
		return info.Namespace != ""
	case row.Namespaced: // of all namespaces: no single object, and info.Namespace is empty
		return info.Namespace == "" && len(info.Parts) == 1
	case info.InNamespace:
		return false
	}
	return info.Namespace == "" || info.Namespace == info.Name // the latter is the namespace itself
}
