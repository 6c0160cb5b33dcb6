package rest

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errNoPath is for a path that this server has not, and that is answered as one that no resource is at.
var errNoPath = errors.New("there is nothing at this path")

// serveDynamic serves a custom resource. Kubernetes does not route its paths one by one: what a request asks for
// decides, so a POST to a name creates what its body names, HEAD reads, and what cannot be is worded otherwise than for
// kinds with a Go type.
func serveDynamic(x *exchange, named bool) error {
	switch verb := x.info.Verb; {
	case x.res.Row.Namespaced && x.info.Namespace == "" && verb != "list" && verb != "watch":
		return errNoPath
	case verb == "create":
		return serveCreate(x)
	case (verb == "update" || verb == "patch") && !named:
		return apierrors.NewBadRequest("name must be provided")
	}
	return serveStored(x, named)
}
