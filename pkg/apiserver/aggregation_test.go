package apiserver_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/api/apiregistration"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/webhook/webhooktest"
)

const apiServices = "/apis/apiregistration.k8s.io/v1/apiservices"

// extension is a server behind the API server: it says that it serves widgets of ext.example.com, and answers what is
// asked.
type extension struct {
	answer http.HandlerFunc
}

func (e extension) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); len(parts) == 3 && parts[0] == "apis" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"%s/%s","resources":[{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["get","list"]}]}`, parts[1], parts[2])
		return
	}
	if r.URL.Path == "/openapi/v3" {
		fmt.Fprint(w, `{"paths":{}}`)
		return
	}
	e.answer(w, r)
}

// startAggregating runs a server, and a Service ext in ns1 with one endpoint, whose connections go to address(): where
// it says it is, nobody is.
func startAggregating(t *testing.T, address func() string, change func(*assemble.Config)) (url string,
	server *assemble.Server) {
	t.Helper()
	url, server = startServer(t, func(c *assemble.Config) {
		c.Aggregation.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address())
		}
		if change != nil {
			change(c)
		}
	})
	for _, x := range []struct{ path, body string }{
		{"/api/v1/namespaces", `{"metadata":{"name":"ns1"}}`},
		{"/api/v1/namespaces/ns1/services",
			`{"metadata":{"name":"ext"},"spec":{"clusterIP":"None","ports":[{"name":"https","port":443}]}}`},
		{"/apis/discovery.k8s.io/v1/namespaces/ns1/endpointslices",
			`{"metadata":{"name":"ext-1","labels":{"kubernetes.io/service-name":"ext"}},"addressType":"IPv4",
			"ports":[{"name":"https","port":8443}],"endpoints":[{"addresses":["192.0.2.1"]}]}`},
	} {
		if code, _, body := call(t, http.MethodPost, url+x.path, x.body, "Content-Type",
			"application/json"); code != http.StatusCreated {
			t.Fatalf("%s: %d %s", x.path, code, body)
		}
	}
	return url, server
}

// register makes the APIService of a group's v1 behind the Service ext.
func register(t *testing.T, url, group string, ca []byte) string {
	t.Helper()
	name := "v1." + group
	trust := `"insecureSkipTLSVerify":true`
	if ca != nil {
		trust = `"caBundle":"` + base64.StdEncoding.EncodeToString(ca) + `"`
	}
	body := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"group":%q,"version":"v1","groupPriorityMinimum":1000,"versionPriority":10,"service":{"namespace":"ns1","name":"ext"},%s}}`, name, group, trust)
	if code, _, answer := call(t, http.MethodPost, url+apiServices, body, "Content-Type",
		"application/json"); code != http.StatusCreated {
		t.Fatalf("%s: %d %s", name, code, answer)
	}
	return name
}

// await watches an APIService until it is as wanted.
func await(t *testing.T, url, name string, wanted func(*v1.APIService) bool) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		url+apiServices+"?watch=1&fieldSelector=metadata.name%3D"+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := plain("admin").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	last := ""
	for d := json.NewDecoder(answer.Body); ; {
		var e struct {
			Type   string
			Object v1.APIService
		}
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%s did not come to be as wanted: %s: %v", name, last, err)
		}
		if e.Type != "DELETED" && wanted(&e.Object) {
			return
		}
		last = fmt.Sprintf("%s %+v", e.Type, e.Object.Status.Conditions)
	}
}

// because wants the condition Available with a reason.
func because(reason, in string) func(*v1.APIService) bool {
	return func(s *v1.APIService) bool {
		c := apiregistration.Condition(s)
		return c != nil && c.Reason == reason && strings.Contains(c.Message, in)
	}
}

// The APIServices of what the server serves itself, and of custom resources, are there without anybody's doing.
func TestAutoregistration(t *testing.T) {
	t.Parallel()
	url := start(t, nil)
	for _, name := range []string{"v1.", "v1.apps", "v1.rbac.authorization.k8s.io"} {
		await(t, url, name, func(s *v1.APIService) bool {
			return s.Labels["kube-aggregator.kubernetes.io/automanaged"] == "onstart" && s.Spec.Service == nil &&
				because("Local", "")(s)
		})
	}
	const crd = `{"metadata":{"name":"foos.example.com"},"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"foos","singular":"foo","kind":"Foo","listKind":"FooList"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
	definitions := url + "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	if code, _, body := call(t, http.MethodPost, definitions, crd, "Content-Type",
		"application/json"); code != http.StatusCreated {
		t.Fatal(body)
	}
	managed := func(s *v1.APIService) bool {
		return s.Labels["kube-aggregator.kubernetes.io/automanaged"] == "true" && s.Spec.GroupPriorityMinimum == 1000 &&
			s.Spec.VersionPriority == 100
	}
	await(t, url, "v1.example.com", managed)
	var before v1.APIService
	_, _, body := call(t, http.MethodGet, url+apiServices+"/v1.example.com", "")
	if err := json.Unmarshal([]byte(body), &before); err != nil {
		t.Fatal(err)
	}
	if code, _, body := call(t, http.MethodDelete, url+apiServices+"/v1.example.com", ""); code != http.StatusOK {
		t.Fatal(body)
	}
	await(t, url, "v1.example.com", func(s *v1.APIService) bool { return s.UID != before.UID && managed(s) })
	if code, _, body := call(t, http.MethodPatch, url+apiServices+"/v1.example.com", `{"spec":{"versionPriority":1}}`,
		"Content-Type", "application/merge-patch+json"); code != http.StatusOK {
		t.Fatal(body)
	}
	await(t, url, "v1.example.com", managed)
}

// Requests go to the server behind a Service, in the name of who asks, and what is unavailable says so.
func TestAggregatedServer(t *testing.T) {
	t.Parallel()
	asked := make(chan *http.Request, 10)
	ext := webhooktest.NewServer(t, extension{func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- r
		w.Header().Set("Audit-Id", "of the other server")
		w.Header().Set("X-Kubernetes-Pf-Flowschema-Uid", "of the other server")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, body)
	}}, "ext.ns1.svc")
	url, _ := startAggregating(t, ext.Addr, nil)
	name := register(t, url, "ext.example.com", ext.CABundle)
	await(t, url, name, because("Passed", "all checks passed"))
	at := url + "/apis/ext.example.com/v1/namespaces/ns1/widgets/w1"
	code, h, body := call(t, http.MethodPut, at+"?a=b", `{"x":1}`, "Audit-Id", "mine", "Content-Type",
		"application/json", "X-Remote-User", "root", "X_Remote_Group", "system:masters")
	if code != http.StatusTeapot || body != `PUT /apis/ext.example.com/v1/namespaces/ns1/widgets/w1?a=b {"x":1}` {
		t.Errorf("%d %s", code, body)
	}
	if ids := h.Values("Audit-Id"); len(ids) != 1 || ids[0] != "mine" ||
		h.Get("X-Kubernetes-Pf-Flowschema-Uid") == "of the other server" {
		t.Errorf("answered with %v", h)
	}
	r := <-asked
	if h := r.Header; h.Get("X-Remote-User") != "admin" || len(h.Values("X-Remote-User")) != 1 ||
		h.Get("X-Remote-Group") != "" || h.Get("X_Remote_Group") != "" || h.Get("X-Forwarded-For") == "" ||
		h.Get("X-Forwarded-Uri") != "/apis/ext.example.com/v1/namespaces/ns1/widgets/w1" || r.Host != "192.0.2.1:8443" {
		t.Errorf("asked with %v at %s", h, r.Host)
	}
	other, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := plain("jane").Do(other)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close() //nolint:errcheck // only the code counts
	if answer.StatusCode != http.StatusForbidden || len(asked) != 0 {
		t.Errorf("who may not: %d, %d requests came through", answer.StatusCode, len(asked))
	}
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	if _, _, body := call(t, http.MethodGet, url+"/apis", "", "Accept", aggregated); !strings.Contains(body,
		`{"metadata":{"name":"ext.example.com"},"versions":[{"version":"v1","resources":[{"resource":"widgets","responseKind":{"group":"ext.example.com","version":"v1","kind":"Widget"}`) {
		t.Errorf("the discovery of all: %s", body)
	}
	if code, _, body := call(t, http.MethodGet, url+"/openapi/v3/apis/ext.example.com/v1?hash=x",
		""); code != http.StatusTeapot {
		t.Errorf("its OpenAPI: %d %s", code, body)
	}
	<-asked
	if code, _, body := call(t, http.MethodGet, url+"/apis/ext.example.com/v1", ""); code != http.StatusOK ||
		!strings.Contains(body, `"widgets"`) {
		t.Errorf("its discovery: %d %s", code, body)
	}
	if code, _, _ := call(t, http.MethodGet, url+"/apis/ext.example.com/v1/namespaces/ns1/widgets/%2e%2e/x",
		""); code != http.StatusBadRequest || len(asked) != 0 {
		t.Errorf("dots: %d", code)
	}
	slice := url + "/apis/discovery.k8s.io/v1/namespaces/ns1/endpointslices/ext-1"
	if code, _, body := call(t, http.MethodDelete, slice, ""); code != http.StatusOK {
		t.Fatal(body)
	}
	await(t, url, name, because("EndpointsNotFound", ""))
	if _, _, body := call(t, http.MethodGet, url+"/apis", "", "Accept",
		aggregated); !strings.Contains(body,
		`{"metadata":{"name":"ext.example.com"},"versions":[{"version":"v1","freshness":"Stale"}]}`) {
		t.Errorf("the discovery of all, without endpoints: %s", body)
	}
	if code, _, body := call(t, http.MethodGet, at, ""); code != http.StatusServiceUnavailable ||
		body != "service unavailable\n" {
		t.Errorf("without endpoints: %d %s", code, body)
	}
	if code, _, body := call(t, http.MethodPatch, url+apiServices+"/"+name, `{"spec":{"service":null,"caBundle":null}}`,
		"Content-Type", "application/merge-patch+json"); code != http.StatusOK {
		t.Fatal(body)
	}
	await(t, url, name, because("Local", ""))
	if code, _, _ := call(t, http.MethodGet, at, ""); code != http.StatusNotFound {
		t.Errorf("nobody serves it: %d", code)
	}
}

// oldExtension is a server that knows OpenAPI v2 only.
type oldExtension struct {
	extension
	v2 []byte
}

func (e oldExtension) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/openapi/v2":
		w.Header().Set("Content-Type", "application/json")
		w.Write(e.v2) //nolint:errcheck // the client sees it
	case "/openapi/v3":
		http.NotFound(w, r)
	default:
		e.extension.ServeHTTP(w, r)
	}
}

// TestOpenAPIOfOldServers holds the v3 document that is made of a server's v2 to what a kube-apiserver v1.36.3 made of
// the same.
func TestOpenAPIOfOldServers(t *testing.T) {
	t.Parallel()
	read := func(name string) []byte {
		raw, err := os.ReadFile("testdata/openapi/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	ext := webhooktest.NewServer(t, oldExtension{v2: read("old-v2.json")}, "ext.ns1.svc")
	url, _ := startAggregating(t, ext.Addr, nil)
	await(t, url, register(t, url, "old.example.com", ext.CABundle), because("Passed", "all checks passed"))
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	code, _, body := call(t, http.MethodGet, url+"/openapi/v3", "")
	if err := json.Unmarshal([]byte(body), &index); err != nil || code != http.StatusOK {
		t.Fatalf("%d %v", code, err)
	}
	at := index.Paths["apis/old.example.com/v1"].ServerRelativeURL
	if !strings.HasPrefix(at, "/openapi/v3/apis/old.example.com/v1?hash=") {
		t.Fatalf("the list of documents has %q", at)
	}
	code, h, body := call(t, http.MethodGet, url+at, "")
	var got, want any
	if err := errors.Join(json.Unmarshal([]byte(body), &got), json.Unmarshal(read("old-v3.json"), &want)); err != nil {
		t.Fatal(err)
	}
	if code != http.StatusOK || h.Get("Content-Type") != "application/json" || !reflect.DeepEqual(got, want) {
		t.Errorf("%d %v %s", code, h, body)
	}
	if code, _, body := call(t, http.MethodGet, url+"/openapi/v3/apis/old.example.com/v2",
		""); code != http.StatusNotFound {
		t.Errorf("another version: %d %s", code, body)
	}
}

// What a server behind this one must not do to it or to clients.
func TestAggregatedAttacks(t *testing.T) {
	t.Parallel()
	ext := webhooktest.NewServer(t, extension{func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/redirect"):
			http.Redirect(w, r, "https://127.0.0.1:2379/v3/kv/range", http.StatusFound)
		case strings.HasSuffix(r.URL.Path, "/upgrade"):
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close() //nolint:errcheck // the client sees it
			fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"+
				r.Header.Get("X-Remote-User")+"\n")
			rw.Flush() //nolint:errcheck // the client sees it
			io.Copy(conn, rw)
		}
	}}, "ext.ns1.svc")
	url, _ := startAggregating(t, ext.Addr, nil)
	await(t, url, register(t, url, "ext.example.com", nil), because("Passed", ""))
	base := url + "/apis/ext.example.com/v1/widgets/"
	if code, h, body := call(t, http.MethodGet, base+"redirect", ""); code != http.StatusBadGateway ||
		h.Get("Location") != "" {
		t.Errorf("a redirect: %d %v %s", code, h, body)
	}
	wrong := register(t, url, "wrong.example.com", webhooktest.NewServer(t, http.NotFoundHandler()).CABundle)
	await(t, url, wrong, because("FailedDiscoveryCheck", "x509: certificate signed by unknown authority"))

	// Any subresource may be one that is upgraded.
	conn := upgrade(t, base+"upgrade")
	got, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || got != "admin\n" {
		t.Errorf("an upgraded connection: %q, %v", got, err)
	}
}

// upgrade asks for another protocol, as admin, and returns the connection behind the answer's header.
func upgrade(t *testing.T, url string) io.ReadWriteCloser {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	c := plain("admin")
	c.Transport.(as).next.(*http.Transport).ForceAttemptHTTP2 = false
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, ok := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !ok {
		t.Fatalf("%s", answer.Status)
	}
	t.Cleanup(func() { body.Close() }) //nolint:errcheck // it is over
	return body
}

// byProxy believes whoever names a user, as a server believes its front proxy.
type byProxy struct{ byHeader }

func (b byProxy) Authenticate(r *http.Request) (*request.User, error) {
	if name := r.Header.Get("X-Remote-User"); name != "" {
		return &request.User{Name: "admin"}, nil
	}
	return b.byHeader.Authenticate(r)
}

// An APIService that leads back to the server itself goes round once, and says so.
func TestAggregationLoop(t *testing.T) {
	t.Parallel()
	var self string
	url, _ := startAggregating(t, func() string { return self }, func(c *assemble.Config) {
		c.Parts.Authenticator = byProxy{}
		self = c.HTTP.Listener.Addr().String()
	})
	name := register(t, url, "loop.example.com", nil)
	await(t, url, name, because("FailedDiscoveryCheck", "508: the APIService leads back to this API server"))
	if code, _, _ := call(t, http.MethodGet, url+"/apis/loop.example.com/v1/x",
		""); code != http.StatusServiceUnavailable {
		t.Errorf("%d", code)
	}
}

// Nothing goes to the server's own machine, whatever a Service says.
func TestAggregationStaysAway(t *testing.T) {
	t.Parallel()
	url, _ := startAggregating(t, nil, func(c *assemble.Config) {
		c.Aggregation.Dial, c.Aggregation.ByAddress = nil, true
	})
	local := `{"metadata":{"name":"local"},"spec":{"type":"ExternalName","externalName":"localhost"}}`
	if code, _, body := call(t, http.MethodPost, url+"/api/v1/namespaces/ns1/services", local, "Content-Type",
		"application/json"); code != http.StatusCreated {
		t.Fatal(body)
	}
	name := register(t, url, "local.example.com", nil)
	if code, _, body := call(t, http.MethodPatch, url+apiServices+"/"+name, `{"spec":{"service":{"name":"local"}}}`,
		"Content-Type", "application/merge-patch+json"); code != http.StatusOK {
		t.Fatal(body)
	}
	await(t, url, name, because("FailedDiscoveryCheck", "address not allowed"))
}

// A server that answers nobody takes no more than its part of the turns: others are served, and so is this server
// itself.
func TestSlowAggregatedServer(t *testing.T) {
	t.Parallel()
	came, release := make(chan struct{}, 100), make(chan struct{})
	ext := webhooktest.NewServer(t, extension{func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}}, "ext.ns1.svc")
	url, _ := startAggregating(t, ext.Addr, nil)
	await(t, url, register(t, url, "slow.example.com", ext.CABundle), because("Passed", ""))
	const most = 60 // requests to one server
	codes := make(chan int, most)
	for range most {
		go func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/apis/slow.example.com/v1/widgets",
				nil)
			if err != nil {
				codes <- 0
				return
			}
			answer, err := plain("admin").Do(r)
			if err != nil {
				codes <- 0
				return
			}
			answer.Body.Close() //nolint:errcheck // only the code counts
			codes <- answer.StatusCode
		}()
	}
	for range most {
		<-came
	}
	if code, h, _ := call(t, http.MethodGet, url+"/apis/slow.example.com/v1/widgets",
		""); code != http.StatusTooManyRequests || h.Get("Retry-After") != "1" {
		t.Errorf("one more: %d", code)
	}
	for _, path := range []string{"/apis", "/api/v1/namespaces", "/readyz"} {
		if code, _, _ := call(t, http.MethodGet, url+path, ""); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
	}
	close(release)
	for range most {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a patient one: %d", code)
		}
	}
}

// Watches of a server that does not answer them hold no turns: others have theirs, however few there are.
func TestUnansweredWatchesHoldNoTurn(t *testing.T) {
	t.Parallel()
	came := make(chan struct{})
	ext := webhooktest.NewServer(t, extension{func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		<-r.Context().Done()
	}}, "ext.ns1.svc")
	url, _ := startAggregating(t, ext.Addr, fairly(t, 2))
	await(t, url, register(t, url, "mute.example.com", ext.CABundle), because("Passed", ""))
	for range 5 {
		dial(t, url, "GET /apis/mute.example.com/v1/widgets?watch=true HTTP/1.1\r\nHost: x\r\nTest-User: admin\r\n\r\n")
		select {
		case <-came:
		case <-time.After(5 * time.Second):
			t.Fatal("a watch waits for its turn")
		}
	}
	if code, _, body := call(t, http.MethodGet, url+maps, ""); code != http.StatusOK {
		t.Errorf("a read beside them: %d %s", code, body)
	}
}

// A server that takes connections and says nothing at all keeps nobody from discovery, from definitions that come, and
// from the document of OpenAPI, and is told as what is not there.
func TestSilentAggregatedServer(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	came := make(chan struct{}, 100)
	ext := webhooktest.NewServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}), "ext.ns1.svc")
	t.Cleanup(func() { close(release) })
	url, _ := startAggregating(t, ext.Addr, nil)
	register(t, url, "silent.example.com", ext.CABundle)
	<-came // its first check hangs now
	ask := func(path, accept, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // less than a check takes
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		answer, err := plain("admin").Do(r)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		defer answer.Body.Close() //nolint:errcheck // it was read
		if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK ||
			!strings.Contains(string(body), want) {
			t.Errorf("%s: %d %v %.300s", path, answer.StatusCode, err, body)
		}
	}
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	ask("/apis", aggregated, `"name":"apps"`)
	ask("/apis", "application/json", `"apps"`)
	ask("/openapi/v3", "application/json", `"apis/apps/v1"`)
	definitions := url + "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	if code, _, body := call(t, http.MethodPost, definitions, definition("beside.io", anything), "Content-Type",
		"application/json"); code != http.StatusCreated {
		t.Fatal(body)
	}
	await(t, url, "v1.beside.io", because("Local", ""))
	ask("/apis/beside.io/v1", "application/json", `"ws"`)
	await(t, url, "v1.silent.example.com", because("FailedDiscoveryCheck", ""))
	ask("/apis", aggregated,
		`{"metadata":{"name":"silent.example.com"},"versions":[{"version":"v1","freshness":"Stale"}]}`)
}

// endless is a server that says what it serves of one group only, and answers everything else a byte at a time, without
// an end.
type endless struct {
	open, most map[string]int // answers under way by path, and the most there were at a time
	mu         sync.Mutex
	ended      chan struct{}
}

func (e *endless) count(path string, by int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open[path] += by
	e.most[path] = max(e.most[path], e.open[path])
}

// under is how many answers to path are under way, and the most there were.
func (e *endless) under(path string) (open, most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open[path], e.most[path]
}

func (e *endless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/apis/drip.example.com/v1" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"drip.example.com/v1","resources":[{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["get","list"]}]}`)
		return
	}
	e.count(r.URL.Path, 1)
	defer func() {
		e.count(r.URL.Path, -1)
		select {
		case e.ended <- struct{}{}:
		default:
		}
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := fmt.Fprint(w, " "); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// A server that never comes to an end, in what it serves, in what it says of it and in its answers, holds up nobody: it
// is asked by one request at a time, others are told of meanwhile, what is handed on ends with the request's time, and
// nothing of it stays.
func TestEndlessAggregatedServer(t *testing.T) {
	t.Parallel()
	e := &endless{open: map[string]int{}, most: map[string]int{}, ended: make(chan struct{}, 1)}
	ext := webhooktest.NewServer(t, e, "ext.ns1.svc")
	url, _ := startAggregating(t, ext.Addr, func(c *assemble.Config) { c.HTTP.RequestTimeout = 10 * time.Second })
	const bad = "/apis/never.example.com/v1"
	names := []string{register(t, url, "drip.example.com", ext.CABundle),
		register(t, url, "never.example.com", ext.CABundle)}
	await(t, url, names[0], because("Passed", ""))
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	var asked sync.WaitGroup
	for range 5 {
		for path, want := range map[string]string{"/apis": `"drip.example.com"`,
			"/openapi/v2": `"/apis/apps/v1/namespaces/{namespace}/deployments"`, "/openapi/v3": `"apis/apps/v1"`} {
			asked.Go(func() {
				if code, _, body := call(t, http.MethodGet, url+path, "", "Accept",
					aggregated+",application/json"); code != http.StatusOK || !strings.Contains(body, want) {
					t.Errorf("%s: %d %.300s", path, code, body)
				}
			})
		}
	}
	asked.Go(func() { // the headers are there at once, and the body is over when the request's time is
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/apis/drip.example.com/v1/widgets", nil)
		if err != nil {
			t.Error(err)
			return
		}
		answer, err := plain("admin").Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close() //nolint:errcheck // it was read
		if body, err := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK || len(body) == 0 {
			t.Errorf("what is handed on: %d, %d bytes, %v", answer.StatusCode, len(body), err)
		}
	})
	asked.Wait()
	await(t, url, names[1], because("FailedDiscoveryCheck", "deadline exceeded"))
	for _, path := range []string{bad, "/openapi/v2", "/openapi/v3"} {
		if _, most := e.under(path); most != 1 {
			t.Errorf("%s was asked for %d times at once", path, most)
		}
	}
	for _, name := range names {
		if code, _, body := call(t, http.MethodDelete, url+apiServices+"/"+name, ""); code != http.StatusOK {
			t.Fatal(body)
		}
	}
	for _, path := range []string{bad, "/openapi/v2", "/openapi/v3", "/apis/drip.example.com/v1/widgets"} {
		for open, _ := e.under(path); open > 0; open, _ = e.under(path) {
			select {
			case <-e.ended:
			case <-time.After(time.Minute):
				t.Fatalf("%d answers to %s are still under way", open, path)
			}
		}
	}
}
