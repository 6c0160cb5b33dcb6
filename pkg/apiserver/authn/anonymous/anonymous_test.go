package anonymous_test

import (
	"net/http/httptest"
	"testing"

	"bonsai/pkg/apiserver/authn/anonymous"
	"bonsai/pkg/apiserver/request"
)

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	health := anonymous.Authenticator{Open: anonymous.Only(anonymous.HealthAndVersion()...)}
	joining := anonymous.Authenticator{Open: anonymous.Only(anonymous.Discovery()...)}
	none := anonymous.Authenticator{Open: anonymous.Only()}
	for _, c := range []struct {
		a    anonymous.Authenticator
		path string
		want bool
	}{
		{health, "/readyz", true}, {health, "/readyz?verbose", true}, {health, "/version", true},
		{health, "/livez/etcd", false}, {health, "/healthz/", false}, {health, "/metrics", false},
		{health, "/api", false}, {health, "/", false},
		{none, "/healthz", false},
		{joining, "/api/v1/namespaces/kube-public/configmaps/cluster-info", true},
		{health, "/api/v1/namespaces/kube-public/configmaps/cluster-info", false},
		{joining, "/api/v1/namespaces/kube-public/configmaps", false},
		{joining, "/api/v1/namespaces/kube-public/configmaps/cluster-info/", false},
	} {
		u, err := c.a.Authenticate(httptest.NewRequest("GET", c.path, nil))
		if err != nil || (u != nil) != c.want {
			t.Errorf("%s: %v, %v", c.path, u, err)
		}
		if u != nil && (u.Name != request.AnonymousUser || len(u.Groups) != 1 ||
			u.Groups[0] != request.GroupUnauthenticated) {
			t.Errorf("%s: %+v", c.path, u)
		}
	}
}
