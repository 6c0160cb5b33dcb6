package rest

import (
	"net/http/httptest"
	"testing"

	"bonsai/api/resources"
)

// What a path says twice, or says in a scope that the resource does not have, is no path of the resource
// (CVE-2019-11247).
func TestHasPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path string
		want bool
	}{
		{"/api/v1/nodes", true},
		{"/api/v1/nodes/n", true},
		{"/api/v1/nodes/n/proxy//a/", true},
		{"/api/v1/watch/nodes/n", true},
		{"/api/v1/namespaces", true},
		{"/api/v1/namespaces/x", true},
		{"/api/v1/namespaces/x/finalize", true},
		{"/api/v1/namespaces/x/pods", true},
		{"/api/v1/namespaces/x/pods/p/log", true},
		{"/api/v1/pods", true},
		{"/api/v1/watch/namespaces/x/pods/p", true},
		{"/api/v1/namespaces/x/nodes", false},
		{"/api/v1/namespaces/x/nodes/n", false},
		{"/api/v1/namespaces/x/namespaces", false},
		{"/api/v1/namespaces/x/namespaces/y", false},
		{"/api/v1/namespaces/x/namespaces/x", false},
		{"/api/v1/namespaces/x/namespaces/y/status", false},
		{"/api/v1/watch/namespaces/x/namespaces/y", false},
		{"/api/v1/namespaces//namespaces/y", false},
		{"/api/v1/namespaces//pods", false},
		{"/api/v1/namespaces//pods/p", false},
		{"/api/v1/namespaces//status", false},
		{"/api/v1/pods/p", false},
		{"/api/v1/pods//log", false},
		{"/api/v1/nodes//proxy", false},
		{"/api/v1/nodes/n//", false},
		{"/api/v1/nodes/n//proxy", false},
		{"/api/v1/namespaces/x/pods//log", false},
		{"/api/v1/watch/nodes/n/proxy", false},
		{"/api/v1/watch/namespaces/x/pods/p/log", false},
	} {
		info := InfoOf(httptest.NewRequest("GET", c.path, nil))
		row := &resources.Row{Namespaced: info.Resource == "pods"}
		if got := hasPlace(row, info); got != c.want {
			t.Errorf("%s: %v; %+v", c.path, got, info)
		}
	}
}
