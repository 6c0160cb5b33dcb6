package metrics

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiserver/request"
)

// labels identify the series of a request.
type labels struct {
	verb, group, version, resource, subresource, scope, dryRun string
	code                                                       int
}

// place returns the values of the labels that the variable place names.
func (l *labels) place() []string {
	return []string{l.verb, l.group, l.version, l.resource, l.subresource, l.scope, component}
}

// labelsOf returns all labels except the code and dryRun.
func labelsOf(info *request.Info, served bool, r *http.Request) labels {
	l := labels{verb: verb(info, r)}
	if served && info.IsResource {
		l.group, l.version, l.resource, l.subresource, l.scope = info.APIGroup, info.APIVersion, info.Resource,
			info.Subresource, info.Scope()
	}
	return l
}

// verb is the request's verb as the metrics of Kubernetes spell it. A deletion of many counts as a deletion: only its
// scope differs.
func verb(info *request.Info, r *http.Request) string {
	switch info.Subresource {
	case "attach", "exec", "log", "portforward", "proxy":
		if info.IsResource {
			return "CONNECT"
		}
	}
	switch info.Verb {
	case "get":
		return "GET"
	case "list":
		return "LIST"
	case "watch":
		return "WATCH"
	case "create", "post":
		return "POST"
	case "update", "put":
		return "PUT"
	case "patch":
		if strings.HasPrefix(r.Header.Get("Content-Type"), applyTypes) {
			return "APPLY"
		}
		return "PATCH"
	case "delete", "deletecollection":
		return "DELETE"
	}
	return "other"
}

// applyTypes is what the content types of server-side apply begin with.
var applyTypes = strings.TrimSuffix(string(types.ApplyYAMLPatchType), "+yaml")

// dryRun is "" without a dry run, "All", or "invalid": what else clients write does not become a label.
func dryRun(u *url.URL) string {
	if !strings.Contains(u.RawQuery, "dryRun") {
		return ""
	}
	out := ""
	for _, v := range u.Query()["dryRun"] {
		if v != "All" {
			return "invalid"
		}
		out = v
	}
	return out
}
