package rest

import (
	"net/http/httptest"
	"strings"
	"testing"

	"bonsai/pkg/apiserver/request"
)

// The shapes of paths in the API conventions, "Resources" and "Verbs on Resources", and of the deprecated watch prefix.
func TestInfoOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, url string
		want        request.Info
		parts       string
	}{
		{"GET", "/healthz", request.Info{Verb: "get"}, ""},
		{"POST", "/openapi/v2", request.Info{Verb: "post"}, ""},
		{"GET", "/api", request.Info{Verb: "get"}, ""},
		{"GET", "/api/v1", request.Info{Verb: "get"}, ""},
		{"GET", "/apis/apps/v1", request.Info{Verb: "get"}, ""},
		{"GET", "/api/v1/namespaces",
			request.Info{IsResource: true, Verb: "list", APIVersion: "v1", Resource: "namespaces"}, "namespaces"},
		{"GET", "/api/v1/namespaces/x",
			request.Info{IsResource: true, Verb: "get", APIVersion: "v1", Namespace: "x", Resource: "namespaces",
				Name: "x"}, "namespaces x"},
		{"PUT", "/api/v1/namespaces/x/finalize",
			request.Info{IsResource: true, Verb: "update", APIVersion: "v1", Namespace: "x", Resource: "namespaces",
				Name: "x", Subresource: "finalize"}, "namespaces x finalize"},
		{"GET", "/api/v1/pods", request.Info{IsResource: true, Verb: "list", APIVersion: "v1", Resource: "pods"},
			"pods"},
		{"GET", "/api/v1/namespaces/x/pods?watch=true",
			request.Info{IsResource: true, Verb: "watch", APIVersion: "v1", Namespace: "x", Resource: "pods"}, "pods"},
		{"GET", "/api/v1/namespaces/x/pods?watch=false",
			request.Info{IsResource: true, Verb: "list", APIVersion: "v1", Namespace: "x", Resource: "pods"}, "pods"},
		{"GET", "/api/v1/namespaces/x/pods?fieldSelector=metadata.name%3Dp",
			request.Info{IsResource: true, Verb: "list", APIVersion: "v1", Namespace: "x", Resource: "pods", Name: "p",
				FieldSelector: "metadata.name=p"}, "pods"},
		{"GET", "/api/v1/namespaces/x/pods?fieldSelector=metadata.name%3D..",
			request.Info{IsResource: true, Verb: "list", APIVersion: "v1", Namespace: "x", Resource: "pods",
				FieldSelector: "metadata.name=.."}, "pods"},
		{"GET", "/api/v1/watch/namespaces/x/pods/p",
			request.Info{IsResource: true, Verb: "watch", APIVersion: "v1", Namespace: "x", Resource: "pods",
				Name: "p"}, "pods p"},
		{"DELETE", "/api/v1/watch/namespaces/x/pods/p",
			request.Info{IsResource: true, Verb: "", APIVersion: "v1", Namespace: "x", Resource: "pods", Name: "p"},
			"pods p"},
		{"GET", "/api/v1/namespaces/x/pods//proxy?fieldSelector=metadata.name%3Dp",
			request.Info{IsResource: true, Verb: "get", APIVersion: "v1", Namespace: "x", Resource: "pods",
				Subresource: "proxy"}, "pods  proxy"},
		{"GET", "/api/v1/watch/pods", request.Info{IsResource: true, Verb: "watch", APIVersion: "v1", Resource: "pods"},
			"pods"},
		{"DELETE", "/api/v1/namespaces/x/pods",
			request.Info{IsResource: true, Verb: "deletecollection", APIVersion: "v1", Namespace: "x",
				Resource: "pods"}, "pods"},
		{"DELETE", "/api/v1/namespaces/x/pods?fieldSelector=metadata.name%3Dp",
			request.Info{IsResource: true, Verb: "deletecollection", APIVersion: "v1", Namespace: "x", Resource: "pods",
				FieldSelector: "metadata.name=p"}, "pods"},
		{"HEAD", "/api/v1/nodes/n",
			request.Info{IsResource: true, Verb: "get", APIVersion: "v1", Resource: "nodes", Name: "n"}, "nodes n"},
		{"POST", "/api/v1/namespaces/x/pods/p/exec?command=ls",
			request.Info{IsResource: true, Verb: "create", APIVersion: "v1", Namespace: "x", Resource: "pods",
				Name: "p", Subresource: "exec"}, "pods p exec"},
		{"GET", "/api/v1/nodes/n/proxy/stats/summary",
			request.Info{IsResource: true, Verb: "get", APIVersion: "v1", Resource: "nodes", Name: "n",
				Subresource: "proxy"}, "nodes n proxy stats summary"},
		{"PATCH", "/apis/apps/v1/namespaces/x/deployments/d/scale",
			request.Info{IsResource: true, Verb: "patch", APIGroup: "apps", APIVersion: "v1", Namespace: "x",
				Resource: "deployments", Name: "d", Subresource: "scale"}, "deployments d scale"},
	} {
		got := InfoOf(httptest.NewRequest(c.method, c.url, nil))
		if parts := strings.Join(got.Parts, " "); parts != c.parts {
			t.Errorf("%s %s: parts %q, want %q", c.method, c.url, parts, c.parts)
		}
		c.want.Path, _, _ = strings.Cut(c.url, "?")
		if c.want.IsResource {
			c.want.APIPrefix = strings.Split(c.url, "/")[1]
		}
		c.want.Parts, got.Parts = nil, nil
		if g, w := *got, c.want; g.Verb != w.Verb || g.Path != w.Path || g.IsResource != w.IsResource ||
			g.APIPrefix != w.APIPrefix || g.APIGroup != w.APIGroup ||
			g.APIVersion != w.APIVersion || g.Namespace != w.Namespace ||
			g.InNamespace != (w.Namespace != "" && w.Resource != "namespaces") || g.Resource != w.Resource ||
			g.Name != w.Name || g.Subresource != w.Subresource || g.FieldSelector != w.FieldSelector {
			t.Errorf("%s %s:\n got %+v\nwant %+v", c.method, c.url, g, w)
		}
	}
}

func TestLongRunning(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"/api/v1/pods?watch=1": true, "/api/v1/pods": false, "/api/v1/namespaces/x/pods/p/log": true,
		"/api/v1/namespaces/x/pods/p": false,
		"/debug/pprof/profile":        true, "/healthz": false,
	} {
		if got := LongRunning(InfoOf(httptest.NewRequest("GET", url, nil))); got != want {
			t.Errorf("%s: %v", url, got)
		}
	}
}

func TestNegotiate(t *testing.T) {
	t.Parallel()
	table := "application/json;as=Table;v=v1;g=meta.k8s.io"
	for _, c := range []struct {
		accept string
		p      purpose
		media  string // "" is 406
		as     string
	}{
		{"", forObject, typeJSON, ""},
		{"*/*", forObject, typeJSON, ""},
		{"application/json", forList, typeJSON, ""},
		{"application/yaml", forObject, typeYAML, ""},
		{"application/yaml", forStream, "", ""},
		{"text/html", forObject, "", ""},
		{"text/html, application/json;q=0.5", forObject, typeJSON, ""},
		{"application/json;q=0.1, application/vnd.kubernetes.protobuf", forObject, typeProtobuf, ""},
		{"application/vnd.kubernetes.protobuf,application/json", forObject, typeProtobuf, ""},
		{"application/vnd.kubernetes.protobuf;stream=watch", forStream, typeProtobuf, ""},
		{"application/vnd.kubernetes.protobuf;stream=watch", forObject, typeProtobuf, ""},
		{"application/json;;", forObject, typeJSON, ""},
		{"garbage", forObject, "", ""},
		{table + ",application/json", forList, typeJSON, "Table"},
		{table + ",application/json", forPlain, typeJSON, ""},
		{strings.Replace(table, "json", "vnd.kubernetes.protobuf", 1), forList, "", ""},
		{strings.Replace(table, "v1", "v2", 1), forList, "", ""},
		{strings.Replace(table, "Table", "PartialObjectMetadata", 1), forObject, typeJSON, "PartialObjectMetadata"},
		{strings.Replace(table, "Table", "PartialObjectMetadata", 1), forList, "", ""},
		{strings.Replace(table, "Table", "PartialObjectMetadataList", 1), forList, typeJSON,
			"PartialObjectMetadataList"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		if c.accept != "" {
			r.Header.Set("Accept", c.accept)
		}
		got, err := negotiate(r, c.p, allTypes())
		if got.media != c.media && err == nil || (err != nil) != (c.media == "") || err == nil && got.as != c.as {
			t.Errorf("%q for %d: %+v, %v", c.accept, c.p, got, err)
		}
	}
}
