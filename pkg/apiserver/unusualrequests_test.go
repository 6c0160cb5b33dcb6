package apiserver_test

import (
	"strings"
	"testing"

	"bonsai/pkg/apiserver/assemble"
)

// TestUnusualRequests has what Kubernetes 1.36.3 answers to requests that are wrong or unusual in one thing.
func TestUnusualRequests(t *testing.T) {
	t.Parallel()
	host := start(t, nil)
	maps := "/api/v1/namespaces/ns/configmaps"
	event := `{"metadata":{"name":"e"},"regarding":{"namespace":"ns"},"reason":"r","note":"n","type":"Normal","eventTime":"2026-01-01T00:00:00.000000Z",` +
		`"reportingController":"x.y/z","reportingInstance":"i","action":"a"}`
	const merge, json, strategic = "application/merge-patch+json", "application/json-patch+json",
		"application/strategic-merge-patch+json"
	for _, c := range []struct {
		method, path, media, body string
		code                      int
		want                      string
	}{
		{"POST", maps, "", `{"metadata":{"name":"a","labels":{"i":"1"}},"data":{"a":"b"}}`, 201, `"name":"a"`},
		// patches
		{"PATCH", maps + "/a", merge, `{"metadata":{"name":null}}`, 400,
			"the name of the object (a based on URL) was undeterminable: name must be provided"},
		{"PATCH", maps + "/a", merge, `{"metadata":null}`, 400, "name must be provided"},
		{"PATCH", maps + "/a", merge, `null`, 400, "Invalid JSON Patch"},
		{"PATCH", maps + "/a", merge, `{"data":5}`, 422,
			`patch: Invalid value: \"{\\\"apiVersion\\\":\\\"v1\\\",\\\"data\\\":5,`},
		{"PATCH", maps + "/a?fieldValidation=Strict", merge, `{"data":{"a":"1","a":"2"}}`, 422,
			`strict decoding error: duplicate field \"data.a\"`},
		{"PATCH", maps + "/a", json, `[{"op":"replace","path":"/data/new","value":"x"}]`, 200, `"new":"x"`},
		{"PATCH", maps + "/a", strategic, `{"metadata":{"labels":{"$patch":"foo"}}}`, 500,
			"unknown patch type: foo in map"},
		{"PATCH", maps + "/a", merge, `{"metadata":{"creationTimestamp":"2020-01-01T00:00:00Z"}}`, 200, `"name":"a"`},
		// paths and methods
		{"GET", maps + "/..", "", "", 400, `Name parameter invalid: \"..\": may not be '..'`},
		{"GET", maps + "/a%25b", "", "", 400, "may not contain '%'"},
		{"GET", "/api/v1/namespaces/ns/namespaces", "", "", 404, "the server could not find the requested resource"},
		{"GET", "/api/v1/namespaces/ns/finalize", "", "", 405, "does not allow this method"},
		{"GET", "//api/v1/pods", "", "", 404, "404 page not found"},
		{"GET", "/apis//v1/pods", "", "", 404, "404 page not found"},
		{"HEAD", maps, "", "", 405, ""},
		{"PUT", "/api", "", "{}", 405, "does not allow this method"},
		{"PUT", "/apis/apps/v1", "", "{}", 405, "does not allow this method"},
		{"HEAD", "/api/v1", "", "", 405, ""},
		{"HEAD", "/apis", "", "", 200, ""},
		{"OPTIONS", "/apis", "", "", 200, `"kind":"APIGroupList"`},
		{"OPTIONS", "/apis/apps", "", "", 200, `"kind":"APIGroup"`},
		{"DELETE", "/apis/nope", "", "", 404, "404 page not found"},
		{"GET", "/version/", "", "", 200, ""},
		{"GET", "/apis/authentication.k8s.io/v1/watch/tokenreviews", "", "", 404,
			"the server could not find the requested resource"},
		// parameters
		{"GET", maps + "?continue=x&resourceVersion=1", "", "", 400,
			"specifying resource version is not allowed when using continue"},
		{"GET", "/apis/apps/v1/replicasets?fieldSelector=status.replicas%3D0", "", "", 400,
			`is not a known field selector: only \"metadata.name\", \"metadata.namespace\"`},
		{"GET", "/api/v1/pods?fieldSelector=status.podIPs%3D1", "", "", 200, `"items":[]`},
		// deletecollection answers with what was there
		{"DELETE", maps + "?labelSelector=i%3D1", "", "", 200, `"name":"a"`},
		{"DELETE", maps + "/gone", "", `[]`, 400, `"couldn't get version/kind; json parse error`},
		// a PUT that creates does not mind a version, but a uid
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l", "",
			`{"metadata":{"name":"l","resourceVersion":"5"}}`, 201, `"name":"l"`},
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/m", "", `{"metadata":{"name":"m","uid":"x"}}`, 409,
			"Precondition failed: UID in precondition: x, UID in object meta: "},
		// events.k8s.io has rules of its own
		{"POST", "/apis/events.k8s.io/v1/namespaces/ns/events", "",
			`{"metadata":{"name":"e"},"regarding":{"namespace":"ns"}}`, 422, "eventTime: Required value"},
		{"POST", "/apis/events.k8s.io/v1/namespaces/ns/events", "", event, 201, `"note":"n"`},
		{"PATCH", "/apis/events.k8s.io/v1/namespaces/ns/events/e", merge, `{"note":"z"}`, 422,
			`Event \"e\" is invalid: message: Invalid value: \"z\": field is immutable`},
		{"GET", "/apis/events.k8s.io/v1/namespaces/ns/events/gone", "", "", 404,
			`events.events.k8s.io \"gone\" not found`},
	} {
		if c.media == "" && c.body != "" {
			c.media = "application/json"
		}
		code, _, body := call(t, c.method, host+c.path, c.body, "Content-Type", c.media)
		if code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s %s %s:\n got %d %s\nwant %d %s", c.method, c.path, c.body, code, body, c.code, c.want)
		}
	}
}

// A body with too many values is refused, and MaxValues raises the bound.
func TestMaxValues(t *testing.T) {
	t.Parallel()
	body := `{"metadata":{"name":"a","finalizers":[` + strings.Repeat(`"a.b/c",`, 100_000) + `"a.b/c"]}}`
	for values, want := range map[int]int{0: 413, 200_000: 201} {
		host := start(t, func(c *assemble.Config) { c.MaxValues = values })
		if code, _, answer := call(t, "POST", host+"/api/v1/namespaces/ns/configmaps", body); code != want {
			t.Errorf("MaxValues %d: %d, want %d: %.300s", values, code, want, answer)
		}
	}
}
