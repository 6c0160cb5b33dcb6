package componentstatus

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// listed is what is said of each component: its condition's status and message.
func listed(t *testing.T, components ...Component) []string {
	t.Helper()
	objs, err := New(components).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i, obj := range objs {
		c := obj.(*corev1.ComponentStatus)
		if c.Name != components[i].Name || len(c.Conditions) != 1 || c.Conditions[0].Type != corev1.ComponentHealthy {
			t.Errorf("%s: %+v", components[i].Name, c)
			continue
		}
		out = append(out, string(c.Conditions[0].Status)+" "+c.Conditions[0].Message)
	}
	return out
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	sick := false
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sick {
			http.Error(w, "sick", http.StatusInternalServerError)
			return
		}
		w.Write([]byte(strings.TrimPrefix(r.URL.Path, "/")))
	}))
	defer server.Close()
	a := Component{Name: "a", Healthy: httpProbe(server.URL+"/ok", local(), nil)}
	strict := Component{Name: "strict", Healthy: httpProbe(server.URL+"/ok", &tls.Config{}, nil)}
	etcd := Component{Name: "etcd-0", Healthy: etcdHealth(server.URL+"/", local(), nil)}
	if got := listed(t, a, etcd); got[0] != "True ok" || got[1] != "True ok" {
		t.Errorf("healthy: %q", got)
	}
	if got := listed(t, strict); !strings.HasPrefix(got[0], "False Get ") || !strings.Contains(got[0], "certificate") {
		t.Errorf("a certificate that nobody vouches for: %q", got)
	}
	sick = true
	if got := listed(t, a, etcd); got[0] != "False HTTP probe failed with statuscode: 500: sick\n" || got[1] != got[0] {
		t.Errorf("sick: %q", got)
	}
	server.Close()
	if got := listed(t, a); !strings.HasPrefix(got[0], "False Get \""+server.URL+"/ok\": ") {
		t.Errorf("gone: %q", got)
	}
}

// All are asked at once: each waits until the others are asked, too.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	var asked sync.WaitGroup
	all := make([]Component, 3)
	asked.Add(len(all))
	for i := range all {
		all[i] = Component{Name: string(rune('a' + i)), Healthy: func(context.Context) (string, error) {
			asked.Done()
			asked.Wait()
			return "ok", nil
		}}
	}
	if got := listed(t, all...); len(got) != len(all) {
		t.Errorf("%q", got)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	var names []string
	for _, c := range Defaults([]string{"http://127.0.0.1:1", "http://127.0.0.1:2"}, nil, nil) {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, " "); got != "controller-manager scheduler etcd-0 etcd-1" {
		t.Error(got)
	}
}
