package apiserver_test

import (
	"encoding/json"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestGenerationOfClients: a kind that counts no generation keeps the one that a client creates an object with, which
// must not be negative, and takes no other one later. A kind that counts it starts with 1. Recorded from a
// kube-apiserver v1.37.2.
func TestGenerationOfClients(t *testing.T) {
	t.Parallel()
	admin := recordedServer(t, nil)("admin")
	const (
		maps        = "/api/v1/namespaces/default/configmaps"
		roles       = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
		classes     = "/apis/networking.k8s.io/v1/ingressclasses"
		plain       = "application/json"
		merge       = "application/merge-patch+json"
		apply       = "application/apply-patch+yaml"
		appliedMap  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","generation":`
		wrong       = ` is invalid: metadata.generation: Invalid value: -3: must be greater than or equal to 0`
		createdRole = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a","generation":`
	)
	for _, c := range []struct {
		method, path, body, form string
		code                     int
		generation               int64
		message                  string
	}{
		{http.MethodPost, maps, `{"metadata":{"name":"a","generation":-3}}`, plain, 422, 0, `ConfigMap "a"` + wrong},
		{http.MethodPost, maps, `{"metadata":{"name":"a","generation":7}}`, plain, 201, 7, ""},
		{http.MethodPut, maps + "/a", `{"metadata":{"name":"a","generation":9},"data":{"a":"b"}}`, plain, 200, 7, ""},
		{http.MethodPut, maps + "/a", `{"metadata":{"name":"a","generation":-3},"data":{"a":"c"}}`, plain, 200, 7, ""},
		{http.MethodPatch, maps + "/a", `{"metadata":{"generation":12},"data":{"a":"d"}}`, merge, 200, 7, ""},
		{http.MethodPatch, maps + "/b?fieldManager=x", appliedMap + `-3}}`, apply, 422, 0, `ConfigMap "b"` + wrong},
		{http.MethodPatch, maps + "/b?fieldManager=x", appliedMap + `3}}`, apply, 201, 3, ""},
		{http.MethodPatch, maps + "/b?fieldManager=x", appliedMap + `5},"data":{"a":"b"}}`, apply, 200, 3, ""},
		{http.MethodPut, roles + "/a", createdRole + `-3}}`, plain, 422, 0,
			`Role.rbac.authorization.k8s.io "a"` + wrong},
		{http.MethodPut, roles + "/a", createdRole + `5}}`, plain, 201, 5, ""},
		{http.MethodPost, classes, `{"metadata":{"name":"a","generation":7},"spec":{"controller":"a.b/c"}}`, plain, 201,
			1, ""},
		{http.MethodPost, classes, `{"metadata":{"name":"b","generation":-3},"spec":{"controller":"a.b/c"}}`, plain, 201,
			1, ""},
	} {
		code, _, body := admin.call(t, c.method, c.path, c.body, c.form)
		var got struct {
			metav1.ObjectMeta `json:"metadata"`
			Message           string
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if code != c.code || got.Generation != c.generation || got.Message != c.message {
			t.Errorf("%s %s %s: %d, generation %d, %q, want %d, %d, %q", c.method, c.path, c.body, code, got.Generation,
				got.Message, c.code, c.generation, c.message)
		}
	}
}
