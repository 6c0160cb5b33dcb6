package apiserver_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry/componentstatus"
)

// TestComponentStatuses has what Kubernetes 1.36.3 answers about a kind whose objects are made when they are asked for.
func TestComponentStatuses(t *testing.T) {
	t.Parallel()
	host := start(t, func(cfg *assemble.Config) {
		cfg.Parts.Behaviours[schema.GroupResource{Resource: "componentstatuses"}] = assemble.Behaviour{
			Answers: catalog.Answers{Lister: componentstatus.New([]componentstatus.Component{
				{Name: "scheduler", Healthy: func(context.Context) (string, error) {
					return "", errors.New("refused")
				}},
				{Name: "etcd-0", Healthy: func(context.Context) (string, error) { return "ok", nil }},
			})}}
	})
	const (
		all       = "/api/v1/componentstatuses"
		scheduler = `{"metadata":{"name":"scheduler"},"conditions":[{"type":"Healthy","status":"False","message":"refused"}]}`
		etcd      = `{"metadata":{"name":"etcd-0"},"conditions":[{"type":"Healthy","status":"True","message":"ok"}]}`
		table     = "application/json;as=Table;g=meta.k8s.io;v=v1"
	)
	list := func(items ...string) string {
		return `{"kind":"ComponentStatusList","apiVersion":"v1","metadata":{},"items":[` + strings.Join(items, ",") +
			"]}\n"
	}
	for _, c := range []struct {
		method, path, accept string
		code                 int
		want                 string
	}{
		{"GET", all, "", 200, list(scheduler, etcd)},
		{"GET", all + "?limit=1", "", 200, list(scheduler, etcd)},
		{"GET", all + "?labelSelector=a%3Db", "", 200, list()},
		{"GET", all + "?fieldSelector=metadata.name%3Detcd-0", "", 200, list(etcd)},
		{"GET", all + "/etcd-0", "", 200, `{"kind":"ComponentStatus","apiVersion":"v1",` + etcd[1:] + "\n"},
		{"GET", all, table, 200, `"cells":["scheduler","Unhealthy","refused",""]`},
		{"GET", all + "/etcd-0", table, 200, `"cells":["etcd-0","Healthy","ok",""]`},
		{"GET", all + "/gone", "", 404, `"message":"componentstatus \"gone\" not found"`},
		{"GET", all + "?watch=1", "", 405,
			`"message":"watch is not supported on resources of kind \"componentstatuses\"","reason":"MethodNotAllowed","details":{"kind":"componentstatuses"}`},
		{"GET", "/api/v1/watch/componentstatuses", "", 404, "the server could not find the requested resource"},
		{"GET", "/api/v1/namespaces/ns/componentstatuses", "", 404, "the server could not find the requested resource"},
		{"POST", all, "", 405, "does not allow this method"},
		{"DELETE", all + "/etcd-0", "", 405, "does not allow this method"},
	} {
		accept := c.accept
		if accept == "" {
			accept = "application/json"
		}
		code, header, body := call(t, c.method, host+c.path, "", "Accept", accept)
		if code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s %s:\n got %d %s\nwant %d %s", c.method, c.path, code, body, c.code, c.want)
		}
		if strings.HasPrefix(c.path, all) &&
			header.Get("Warning") != `299 - "v1 ComponentStatus is deprecated in v1.19+"` {
			t.Errorf("%s %s: warning %q", c.method, c.path, header.Get("Warning"))
		}
	}
}
