package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/request"
)

// InfoOf parses a request's method, path and query. It never fails: a path that is not one of a resource gives a
// non-resource request. Authorization trusts the result, so it must agree with what the handlers do later (hasPlace).
func InfoOf(r *http.Request) *request.Info {
	info := &request.Info{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
	parts := splitPath(r.URL.Path)
	if len(parts) < 3 {
		return info
	}
	switch {
	case parts[0] == "api":
		info.APIPrefix, info.APIVersion, parts = "api", parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3 && parts[1] != "":
		info.APIPrefix, info.APIGroup, info.APIVersion, parts = "apis", parts[1], parts[2], parts[3:]
	default:
		return info
	}
	info.IsResource = true
	info.Verb = verbOf(r.Method)
	if parts[0] == "watch" && len(parts) > 1 {
		info.WatchPrefix, parts = true, parts[1:]
	}
	// /api/v1/namespaces/x/pods is about pods; /api/v1/namespaces/x, and its status and finalize, about the namespace
	// itself.
	if parts[0] == "namespaces" && len(parts) > 1 {
		info.Namespace = parts[1]
		if len(parts) > 2 && !namespaceSubresource(parts[2]) {
			info.InNamespace, parts = true, parts[2:]
		}
	}
	info.Parts, info.Resource = parts, parts[0]
	if len(parts) > 1 {
		info.Name = parts[1]
	}
	if len(parts) > 2 {
		info.Subresource = parts[2]
	}
	refineVerb(info, r.URL)
	return info
}

// refineVerb distinguishes get from list and watch, and delete from deletecollection. It takes the name from the field
// selector of a list or watch, so that RBAC rules with resourceNames allow these. If the path continues after the
// resource, its name is there, and selectors do not count.
func refineVerb(info *request.Info, u *url.URL) {
	switch {
	case info.WatchPrefix && info.Verb == "get":
		info.Verb = "watch"
		return
	case info.WatchPrefix:
		info.Verb = "" // that prefix is only ever read
		return
	case len(info.Parts) > 1:
		return
	case info.Verb == "get":
		info.Verb = "list"
	case info.Verb == "delete":
		info.Verb = "deletecollection"
	default:
		return
	}
	if u.RawQuery == "" {
		return
	}
	query := u.Query()
	info.FieldSelector, info.LabelSelector = query.Get("fieldSelector"), query.Get("labelSelector")
	if info.Verb == "deletecollection" { // who may delete one object may not delete what a selector finds
		return
	}
	if isTrue(query["watch"]) {
		info.Verb = "watch"
	}
	if selector, err := fields.ParseSelector(info.FieldSelector); err == nil {
		if name, ok := selector.RequiresExactMatch("metadata.name"); ok && validSegment(name) {
			info.Name = name
		}
	}
}

// isTrue reads a boolean query parameter as Kubernetes does: present and neither "0" nor "false".
func isTrue(values []string) (set bool) {
	_ = runtime.Convert_Slice_string_To_bool(&values, &set, nil) // takes every value
	return set
}

func validSegment(name string) bool {
	return name != "" && !strings.ContainsAny(name, "/%") && name != "." && name != ".."
}

func namespaceSubresource(s string) bool { return s == "status" || s == "finalize" }

func verbOf(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodGet, http.MethodHead:
		return "get"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return "" // nothing that anyone could be allowed
}

// splitPath splits a path at its slashes. A path that starts with two slashes has an empty first part, so it matches no
// resource.
func splitPath(p string) []string {
	p = strings.TrimSuffix(strings.TrimPrefix(p, "/"), "/")
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}

// LongRunning reports whether a request has no deadline and does not count against the in-flight limits: watches and
// streams.
func LongRunning(info *request.Info) bool {
	if !info.IsResource {
		return strings.HasPrefix(info.Path, "/debug/pprof/")
	}
	return info.Stream || info.Verb == "watch" ||
		slices.Contains([]string{"attach", "exec", "proxy", "log", "portforward"}, info.Subresource)
}
