package history

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the API servers of TestSeveralServers have in common: few addresses and ports, so that they get in each other's
// way.
const (
	serviceRange = "10.9.0.0/26"
	nodePorts    = "30000-30023"
	quota        = 20
)

// TestSeveralServers: several API servers on one etcd, started at once on an empty one, are one API: what one has
// answered the others know, they give no address or port twice and exceed no quota, whichever of them are killed
// meanwhile.
func TestSeveralServers(t *testing.T) {
	client := newClient(t, token, 8)
	etcd, apis := servers(t, client, 3, func(i int) []string {
		return []string{"--service-cluster-ip-range=" + serviceRange, "--service-node-port-range=" + nodePorts,
			fmt.Sprintf("--advertise-address=192.0.2.1%d", i)}
	})
	ctx := t.Context()
	if err := etcd.start(ctx); err != nil {
		t.Fatal(err)
	}
	s := &several{t: t, client: client, apis: apis}
	s.all(func(_ int, a *server) {
		if err := a.start(ctx); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		return
	}
	s.endpoints("192.0.2.10 192.0.2.11 192.0.2.12")
	s.make(0, "/api/v1/namespaces",
		map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": meta{Name: namespace}})
	t.Run("versions", s.versions)
	t.Run("definitions", s.definitions)
	t.Run("quota", s.quota)
	t.Run("services", s.services)
	// One that ends in order is gone when it is gone; one that dies, when its lease has ended.
	apis[2].stop()
	s.endpoints("192.0.2.10 192.0.2.11")
	apis[1].kill()
	s.endpoints("192.0.2.10")
}

// several are the API servers.
type several struct {
	t      *testing.T
	client *http.Client
	apis   []*server
}

// all runs f for each server at the same time.
func (s *several) all(f func(i int, a *server)) {
	var wg sync.WaitGroup
	for i, a := range s.apis {
		wg.Go(func() { f(i, a) })
	}
	wg.Wait()
}

const contentJSON = "application/json"

// make posts an object to a server, which must take it, and returns its resourceVersion.
func (s *several) make(i int, path string, object any) string {
	s.t.Helper()
	code, answer, err := call(s.t.Context(), s.client, http.MethodPost, s.apis[i].url+path, contentJSON, object)
	if err != nil || code != http.StatusCreated {
		s.t.Fatalf("create in %s: %d %s %v", path, code, answer, err)
	}
	var o struct{ Metadata meta }
	if err := json.Unmarshal(answer, &o); err != nil {
		s.t.Fatal(err)
	}
	return o.Metadata.ResourceVersion
}

// eventually waits until a GET on each of the servers that run gives an answer that is right.
func (s *several) eventually(path string, within time.Duration, right func(code int, answer []byte) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, a := range s.apis {
		if a.cmd == nil {
			continue
		}
		for {
			code, answer, err := call(s.t.Context(), s.client, http.MethodGet, a.url+path, "", nil)
			if err == nil && right(code, answer) {
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				s.t.Fatalf("%s after %v: %d %s %v", path, within, code, answer, err)
			}
		}
	}
}

// endpoints waits until the Service "kubernetes" has these: a lease of etcd takes 16 s to end, and what ends with it is
// noticed at once.
func (s *several) endpoints(want string) {
	s.t.Helper()
	s.eventually("/api/v1/namespaces/default/endpoints/kubernetes", time.Minute, func(_ int, answer []byte) bool {
		var e struct {
			Subsets []struct{ Addresses []struct{ IP string } }
		}
		if json.Unmarshal(answer, &e) != nil || len(e.Subsets) != 1 {
			return false
		}
		var got []string
		for _, a := range e.Subsets[0].Addresses {
			got = append(got, a.IP)
		}
		return strings.Join(got, " ") == want
	})
}

// versions: what was written through one server, every other reads at once.
func (s *several) versions(t *testing.T) {
	maps := "/api/v1/namespaces/" + namespace + "/configmaps"
	for n := range 30 {
		name := fmt.Sprintf("version-%d", n)
		version := s.make(n%len(s.apis), maps, configMap{"v1", "ConfigMap", meta{Name: name}, nil, 0})
		s.all(func(i int, a *server) {
			for _, path := range []string{maps + "/" + name,
				maps + "?resourceVersionMatch=NotOlderThan&resourceVersion=" + version,
				maps + "?resourceVersionMatch=Exact&resourceVersion=" + version, maps} {
				code, answer, err := call(t.Context(), s.client, http.MethodGet, a.url+path, "", nil)
				if err != nil || code != http.StatusOK || !strings.Contains(string(answer), `"`+name+`"`) {
					t.Errorf("server %d does not know %s at %s: %d %.200s %v", i, name, path, code, answer, err)
				}
			}
		})
	}
}

// definitions: what defines or guards resources works on all servers soon after it was written through one.
func (s *several) definitions(t *testing.T) {
	const soon = 10 * time.Second // of a machine that is busy; a second is usual
	schema := map[string]any{
		"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	s.make(0, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": meta{Name: "things.example.com"},
			"spec": map[string]any{"group": "example.com", "scope": "Cluster",
				"names":    map[string]any{"plural": "things", "kind": "Thing"},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": schema}}}})
	began := time.Now()
	s.eventually("/apis/example.com/v1/things", soon, func(code int, _ []byte) bool { return code == http.StatusOK })
	t.Logf("a definition was served by all after %v", time.Since(began))
	s.make(1, "/apis/example.com/v1/things",
		map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": meta{Name: "one"}})
	s.eventually("/apis/example.com/v1/things/one", soon, func(code int, _ []byte) bool {
		return code == http.StatusOK
	})

	policies := "/apis/admissionregistration.k8s.io/v1/"
	s.make(1, policies+"validatingadmissionpolicies",
		map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
			"metadata": meta{Name: "none"},
			"spec": map[string]any{"validations": []any{map[string]any{"expression": "false"}},
				"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
					"apiGroups": []string{"example.com"}, "apiVersions": []string{"v1"},
					"resources":  []string{"things"},
					"operations": []string{"CREATE"}}}}}})
	s.make(2, policies+"validatingadmissionpolicybindings",
		map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
			"metadata": meta{Name: "none"},
			"spec":     map[string]any{"policyName": "none", "validationActions": []string{"Deny"}}})
	s.all(func(i int, a *server) {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			code, _, err := call(t.Context(), s.client, http.MethodPost, a.url+"/apis/example.com/v1/things",
				contentJSON,
				map[string]any{"apiVersion": "example.com/v1", "kind": "Thing",
					"metadata": meta{Name: fmt.Sprintf("try-%d-%d", i, n)}})
			if err == nil && code == http.StatusUnprocessableEntity {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				t.Errorf("server %d does not ask the policy: %d %v", i, code, err)
				return
			}
		}
	})
}

// quota: all servers together never let more in than a quota allows.
func (s *several) quota(t *testing.T) {
	const ns = "quota"
	s.make(0, "/api/v1/namespaces", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": meta{Name: ns}})
	quotas := "/api/v1/namespaces/" + ns + "/resourcequotas"
	s.make(1, quotas, map[string]any{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta{Name: "q"},
		"spec": map[string]any{"hard": map[string]string{"count/configmaps": fmt.Sprint(quota)}}})
	// No controller runs that would count for the first time.
	code, answer, err := call(t.Context(), s.client, http.MethodPatch, s.apis[0].url+quotas+"/q/status",
		"application/merge-patch+json",
		map[string]any{"status": map[string]any{"hard": map[string]string{"count/configmaps": fmt.Sprint(quota)},
			"used": map[string]string{"count/configmaps": "0"}}})
	if err != nil || code != http.StatusOK {
		t.Fatalf("the quota's status: %d %s %v", code, answer, err)
	}
	s.eventually(quotas+"?resourceVersion=0", 10*time.Second, func(_ int, answer []byte) bool {
		return strings.Contains(string(answer), `"used":{"count/configmaps":"0"}`)
	})
	var mu sync.Mutex
	made := 0
	s.all(func(i int, a *server) {
		var wg sync.WaitGroup
		defer wg.Wait()
		for n := range 15 {
			wg.Go(func() {
				code, answer, err := call(t.Context(), s.client, http.MethodPost,
					a.url+"/api/v1/namespaces/"+ns+"/configmaps", contentJSON,
					configMap{"v1", "ConfigMap", meta{Name: fmt.Sprintf("c-%d-%d", i, n)}, nil, 0})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && code == http.StatusCreated:
					made++
				case err != nil || code != http.StatusForbidden:
					t.Errorf("server %d: %d %s %v", i, code, answer, err)
				}
			})
		}
	})
	if made != quota {
		t.Errorf("%d objects were let in, the quota is %d", made, quota)
	}
}

// service is what is looked at of a Service.
type service struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		ClusterIP string `json:"clusterIP,omitempty"`
		Type      string `json:"type"`
		Ports     []struct {
			NodePort int `json:"nodePort,omitempty"`
			Port     int `json:"port"`
		} `json:"ports"`
	} `json:"spec"`
}

// services: a random history of Services with node ports through all servers, one of which is killed now and then,
// leaves no address and no port to two of them, at no moment.
func (s *several) services(t *testing.T) {
	path := "/api/v1/namespaces/" + namespace + "/services"
	working, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var mu sync.Mutex
	created, full := 0, 0
	for i := range s.apis {
		for w := range 3 {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), uint64(w)))
				for n := 0; working.Err() == nil; n++ {
					a := s.apis[i]
					name := fmt.Sprintf("s-%d-%d-%d", i, w, random.IntN(4))
					if random.IntN(2) == 0 {
						// may have gone, as its server may
						_, _, _ = call(working, s.client, http.MethodDelete, a.url+path+"/"+name, "", nil)
						continue
					}
					kind := []string{"NodePort", "ClusterIP"}[random.IntN(2)]
					code, answer, err := call(working, s.client, http.MethodPost, a.url+path, contentJSON,
						map[string]any{"apiVersion": "v1", "kind": "Service",
							"metadata": meta{Name: name},
							"spec": map[string]any{"type": kind,
								"ports": []any{map[string]any{"port": 80, "name": "a"},
									map[string]any{"port": 81, "name": "b"}}}})
					mu.Lock()
					switch {
					case err == nil && code == http.StatusCreated:
						created++
					case err == nil && strings.Contains(string(answer), "range is full"):
						full++
					}
					mu.Unlock()
				}
			})
		}
	}
	random := rand.New(rand.NewPCG(7, 7))
	check := func() {
		for n, times := 0, 20; n < times; n++ {
			code, answer, err := call(t.Context(), s.client, http.MethodGet, s.apis[0].url+"/api/v1/services", "", nil)
			if err != nil || code != http.StatusOK {
				continue // it may be the one that was killed
			}
			for _, twice := range sharedIn(t, answer) {
				t.Error(twice)
			}
		}
	}
	for range 4 {
		check()
		victim := s.apis[random.IntN(len(s.apis))]
		victim.kill()
		if err := victim.start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check()
	stop()
	wg.Wait()
	check()
	t.Logf("%d Services were made, %d refused as a range was full", created, full)
	if created < 50 {
		t.Errorf("only %d Services were made", created)
	}
}

// sharedIn says which addresses and node ports two Services of a list have.
func sharedIn(t *testing.T, list []byte) (found []string) {
	var l struct{ Items []service }
	if err := json.Unmarshal(list, &l); err != nil {
		t.Fatal(err)
	}
	owner := map[string]string{}
	for _, svc := range l.Items {
		things := []string{svc.Spec.ClusterIP}
		for _, p := range svc.Spec.Ports {
			if p.NodePort != 0 {
				things = append(things, fmt.Sprint("port ", p.NodePort))
			}
		}
		for _, thing := range things {
			if other, ok := owner[thing]; ok && thing != "" && thing != "None" {
				found = append(found, fmt.Sprintf("%s and %s both have %s", svc.Metadata.Name, other, thing))
			}
			owner[thing] = svc.Metadata.Name
		}
	}
	return found
}

// TestSharedIn: what the checks of TestSeveralServers look for, they find.
func TestSharedIn(t *testing.T) {
	got := sharedIn(t, []byte(`{"items":[
		{"metadata":{"name":"a"},"spec":{"clusterIP":"10.9.0.1","ports":[{"nodePort":30000},{"nodePort":30001}]}},
		{"metadata":{"name":"b"},"spec":{"clusterIP":"10.9.0.1","ports":[{"nodePort":30001}]}},
		{"metadata":{"name":"c"},"spec":{"clusterIP":"None","ports":[{}]}}, {"metadata":{"name":"d"},"spec":{"clusterIP":"None"}}]}`))
	want := []string{"b and a both have 10.9.0.1", "b and a both have port 30001"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
