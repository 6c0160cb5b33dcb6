package apiserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/apiserver/storage/etcdtest"
)

// deleter lets "admin" do everything, and "deleter" delete.
type deleter struct{ onlyAdmin }

func (d deleter) Authorize(ctx context.Context, a authz.Attributes) (authz.Decision, string, error) {
	if a.User.Name == "deleter" && a.Verb == "delete" {
		return authz.Allow, "", nil
	}
	return d.onlyAdmin.Authorize(ctx, a)
}

// TestDiscard: clients see which objects in etcd cannot be read, and can delete them. The answers are those of a real
// kube-apiserver v1.37.2, except for the words of its decoders.
func TestDiscard(t *testing.T) {
	t.Parallel()
	endpoints := []string{etcdtest.Start(t).Endpoint}
	plain, err := etcd.New(t.Context(), etcd.Config{Endpoints: endpoints}) // knows of no facts, so it writes anything
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plain.Close() })
	url := start(t, func(c *assemble.Config) {
		facts := &storage.FactsTable{}
		if c.Catalog, err = catalog.New(t.Context(), catalog.Config{Facts: facts}); err != nil {
			t.Fatal(err)
		}
		store, err := etcd.New(t.Context(), etcd.Config{Endpoints: endpoints, Facts: facts})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		c.Storage, c.Parts.Authorizer = store, deleter{}
	})
	const deployments, key = "/apis/apps/v1/namespaces/x/deployments", "/registry/deployments/x/"
	for _, name := range []string{"a", "b"} {
		if _, err := plain.Create(t.Context(), key+name, storage.Draft{Value: []byte("garbage")}); err != nil {
			t.Fatal(err)
		}
	}
	const option = "?ignoreStoreReadErrorWithClusterBreakingPotential=true"
	for _, c := range []struct {
		user, method, path, body string
		code                     int
		want                     []string
	}{
		{"admin", "GET", deployments + "/a", "", 500, []string{
			`Internal error occurred: StorageError: corrupt object, Code: 7, Key: /deployments/x/a, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=`}},
		{"admin", "DELETE", deployments + "/a", "", 500, []string{`Code: 7, Key: /deployments/x/a`}},
		{"admin", "GET", deployments, "", 500, []string{
			`"message":"failed to read one or more deployments.apps from the storage: StorageError: corrupt object, Code: 7, Key: /registry/deployments/x/a, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=`,
			` (and 1 more)","reason":"StorageReadError","details":{"name":"list","group":"apps","kind":"deployments","causes":[{"reason":"UnexpectedServerResponse","message":"StorageError: corrupt object, Code: 7, Key: /registry/deployments/x/a,`,
			`"field":"/registry/deployments/x/b"}]},"code":500}`}},
		{"admin", "GET", "/api/v1/namespaces/x/configmaps", "", 200, nil},
		{"admin", "DELETE", deployments + option, "", 422, []string{
			`ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: is not allowed with DELETECOLLECTION, try again after removing the option`}},
		{"admin", "DELETE", deployments + "/a" + option + "&gracePeriodSeconds=0", "", 422, []string{
			`ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .gracePeriodSeconds`}},
		{"deleter", "DELETE", deployments + "/a" + option, "", 403, []string{
			`deployments.apps \"a\" is forbidden: not permitted to do \"unsafe-delete-ignore-read-errors\", reason: `}},
		{"admin", "DELETE", deployments + "/a" + option + "&dryRun=All", "", 200, []string{`"status":"Success"`}},
		{"admin", "GET", deployments + "/a", "", 500, nil},
		{"admin", "DELETE", deployments + "/a" + option, "", 200, []string{
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a","kind":"Deployment"},"code":200}`}},
		{"admin", "DELETE", deployments + "/a" + option, "", 404, []string{`deployments.apps \"a\" not found`}},
		{"admin", "DELETE", deployments + "/b", `{"kind":"DeleteOptions","apiVersion":"v1","ignoreStoreReadErrorWithClusterBreakingPotential":true}`,
			200, []string{`"status":"Success"`}},
		{"admin", "GET", deployments, "", 200, nil},
		{"admin", "POST", "/api/v1/namespaces", `{"metadata":{"name":"x"}}`, 201, nil},
		{"admin", "POST", "/api/v1/namespaces/x/configmaps", `{"metadata":{"name":"good"}}`, 201, nil},
		{"admin", "DELETE", "/api/v1/namespaces/x/configmaps/good" + option, "", 409, []string{
			`Operation cannot be fulfilled on configmaps \"good\": StorageError: invalid object, Code: 4, Key: /registry/configmaps/x/good, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is not allowed because the object is decodable from storage`}},
		{"admin", "DELETE", "/api/v1/namespaces/x" + option, "", 500, []string{
			`no unsafe deleter provided, can not honor ignoreStoreReadErrorWithClusterBreakingPotential`}},
	} {
		code, body := callBy(t, c.user, c.method, url+c.path, c.body)
		if code != c.code {
			t.Errorf("%s %s by %s: %d %s", c.method, c.path, c.user, code, body)
		}
		for _, want := range c.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s %s by %s: %s lacks %s", c.method, c.path, c.user, body, want)
			}
		}
	}
}

// callBy is call by a user, with a body of JSON.
func callBy(t *testing.T, user, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := plain(user).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
