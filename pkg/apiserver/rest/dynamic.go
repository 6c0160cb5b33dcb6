package rest

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errNoPath stands for a path that this server does not have. The answer is a plain 404.
var errNoPath = errors.New("there is nothing at this path")

// serveDynamic serves a custom resource. Kubernetes routes its paths by the parsed request and not one by one.
// Therefore a POST to a name creates the object that the body names, HEAD is served, and some refusals have other words
// than for kinds with a Go type.
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
