package rest

import (
	"slices"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/request"
)

// hasPlace reports whether the row has a path like info's. Authorization decided about Namespace, Resource, Subresource
// and Name before the row was known. So a path is served only if these four say everything that the path says, given
// the row's scope. Otherwise a user with all rights in one namespace could reach a cluster-wide object through a path
// below that namespace.
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
