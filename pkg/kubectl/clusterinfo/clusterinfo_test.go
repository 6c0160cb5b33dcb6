package clusterinfo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// TestClusterInfo: the addresses that Kubernetes' kubectl 1.36 gives for the same Services.
func TestClusterInfo(t *testing.T) {
	t.Parallel()
	var query string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"services","singularName":"service","namespaced":true,"kind":"Service","verbs":["list"]}]}`)
		case "/api/v1/namespaces/kube-system/services":
			query = r.URL.RawQuery
			fmt.Fprint(w, `{"kind":"ServiceList","apiVersion":"v1","metadata":{},"items":[
				{"metadata":{"name":"kube-dns","namespace":"kube-system","labels":{"kubernetes.io/name":"CoreDNS"}},"spec":{"ports":[{"name":"dns","port":53},{"port":9153}]}},
				{"metadata":{"name":"secure","namespace":"kube-system"},"spec":{"ports":[{"name":"https","port":8443}]}},
				{"metadata":{"name":"plain","namespace":"kube-system"},"spec":{"ports":[{"port":443}]}},
				{"metadata":{"name":"portless","namespace":"kube-system"},"spec":{}},
				{"metadata":{"name":"lb","namespace":"kube-system"},"spec":{"ports":[{"port":80},{"port":81}]},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}},
				{"metadata":{"name":"named","namespace":"kube-system"},"spec":{"ports":[{"port":80}]},"status":{"loadBalancer":{"ingress":[{"hostname":"lb.example"}]}}}]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	got, code := writetest.Run(t, NewCommand, s.URL, "", "cluster-info")
	want := strings.ReplaceAll(`Kubernetes control plane is running at HOST
CoreDNS is running at HOST/api/v1/namespaces/kube-system/services/kube-dns:dns/proxy
secure is running at HOST/api/v1/namespaces/kube-system/services/https:secure:https/proxy
plain is running at HOST/api/v1/namespaces/kube-system/services/https:plain:/proxy
portless is running at HOST/api/v1/namespaces/kube-system/services/portless/proxy
lb is running at http://192.0.2.1:80 http://192.0.2.1:81 
named is running at http://lb.example:80 

`, "HOST", s.URL)
	if code != 0 || !strings.HasPrefix(got, want) {
		t.Errorf("code %d\n%s\nwant\n%s", code, got, want)
	}
	if query != "labelSelector=kubernetes.io%2Fcluster-service%3Dtrue" {
		t.Errorf("asked with %s", query)
	}
	if got, code := writetest.Run(t, NewCommand, "", "", "cluster-info"); code != 1 ||
		strings.Contains(got, "running at") {
		t.Errorf("without a server: code %d, %s", code, got)
	}
}
