package apiserver_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

// byHeader takes the user from the header Test-User; without it nobody is known.
type byHeader struct{}

func (byHeader) Authenticate(r *http.Request) (*request.User, error) {
	if name := r.Header.Get("Test-User"); name != "" {
		return &request.User{Name: name}, nil
	}
	return nil, nil
}

// onlyAdmin lets "admin" do everything.
type onlyAdmin struct{}

func (onlyAdmin) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	if a.User.Name == "admin" {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

type panics struct{}

func (panics) ServeHTTP(http.ResponseWriter, *http.Request) { panic("on purpose") }

// start runs a whole server over memory and returns its URL.
func start(t *testing.T, change func(*assemble.Config)) string {
	t.Helper()
	url, _ := startServer(t, change)
	return url
}

func startServer(t testing.TB, change func(*assemble.Config)) (url string, server *assemble.Server) {
	t.Helper()
	facts := &storage.FactsTable{}
	life, end := context.WithCancel(context.WithoutCancel(t.Context())) // outlives the server, as in the command
	t.Cleanup(end)
	served, err := catalog.New(life, catalog.Config{Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	all := rows.All()
	cfg := assemble.Config{Catalog: served, Storage: memory.New(facts), Rows: all,
		Parts: assemble.Parts{Authenticator: byHeader{}, Authorizer: onlyAdmin{},
			Paths: map[string]http.Handler{"/panic": panics{}},
			Behaviours: assembletest.Behaviours(all, assembletest.Nobody{},
				registry.Answerer{Connecter: assembletest.Nobody{}})},
		HTTP: apiserver.Config{Listener: listener, TLS: certificate(t), Metrics: prometheus.NewRegistry(),
			Version: version.Info{GitVersion: "v1.36.0"},
			Log:     slog.New(slog.DiscardHandler), MaxReading: 100, MaxMutating: 100}}
	if change != nil {
		change(&cfg)
	}
	server, err = assemble.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(15 * time.Second):
			t.Error("the server does not stop")
		}
	})
	return "https://" + listener.Addr().String(), server
}

// certificate borrows httptest's, which is valid for 127.0.0.1.
func certificate(t testing.TB) *tls.Config {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return &tls.Config{Certificates: s.TLS.Certificates}
}

// as makes requests as a user.
type as struct {
	user string
	next http.RoundTripper
}

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if a.user != "" {
		r.Header.Set("Test-User", a.user)
	}
	return a.next.RoundTrip(r)
}

func client(t *testing.T, url, user, contentType string) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(
		&clientrest.Config{Host: url, QPS: -1, TLSClientConfig: clientrest.TLSClientConfig{Insecure: true},
			ContentConfig: clientrest.ContentConfig{ContentType: contentType, AcceptContentTypes: contentType},
			WrapTransport: func(rt http.RoundTripper) http.RoundTripper { return as{user, rt} }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func plain(user string) *http.Client {
	return &http.Client{Transport: as{user,
		&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}}
}

// call returns the status code and body of one request as admin. headers are pairs.
func call(t *testing.T, method, url, body string, headers ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := plain("admin").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

// The same story with a client of each wire format: create, watch, list, patch, status, delete.
func TestClientGo(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		t.Run(contentType, func(t *testing.T) {
			t.Parallel()
			url := start(t, nil)
			ctx := t.Context()
			maps := client(t, url, "admin", contentType).CoreV1().ConfigMaps("ns")
			w, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "a=b"})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			made, err := maps.Create(ctx,
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m-",
					Labels: map[string]string{"a": "b"}}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
				metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if e := <-w.ResultChan(); e.Type != watch.Added ||
				e.Object.(*corev1.ConfigMap).ResourceVersion != made.ResourceVersion {
				t.Fatalf("first event: %v %v", e.Type, e.Object)
			}
			got, err := maps.Get(ctx, made.Name, metav1.GetOptions{})
			if err != nil || got.Data["k"] != "v" || got.ResourceVersion != made.ResourceVersion ||
				got.UID != made.UID {
				t.Fatalf("get: %v, %v", got, err)
			}
			list, err := maps.List(ctx, metav1.ListOptions{Limit: 1})
			if err != nil || len(list.Items) != 1 || list.Continue == "" || *list.RemainingItemCount != 1 {
				t.Fatalf("first page: %v, %v", list, err)
			}
			if list, err = maps.List(ctx, metav1.ListOptions{Limit: 1, Continue: list.Continue}); err != nil ||
				len(list.Items) != 1 || list.Items[0].Name != "other" || list.Continue != "" {
				t.Fatalf("second page: %v, %v", list, err)
			}
			patched, err := maps.Patch(ctx, made.Name, types.MergePatchType,
				[]byte(`{"metadata":{"labels":{"a":null}}}`), metav1.PatchOptions{})
			if err != nil || patched.Labels["a"] != "" {
				t.Fatalf("patch: %v, %v", patched, err)
			}
			if e := <-w.ResultChan(); e.Type != watch.Deleted ||
				e.Object.(*corev1.ConfigMap).ResourceVersion != patched.ResourceVersion {
				t.Fatalf("leaving the selector: %v %v", e.Type, e.Object)
			}
			if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				t.Fatalf("update of an old version: %v", err)
			}
			if err := maps.Delete(ctx, made.Name,
				metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(made.UID))}); err != nil {
				t.Fatal(err)
			}
			if _, err := maps.Get(ctx, made.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Fatalf("after delete: %v", err)
			}
			if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			if list, err = maps.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
				t.Fatalf("after deletecollection: %v, %v", list, err)
			}
		})
	}
}

func TestInitialEvents(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		url := start(t, nil)
		maps := client(t, url, "admin", contentType).CoreV1().ConfigMaps("ns")
		if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w, err := maps.Watch(t.Context(),
			metav1.ListOptions{SendInitialEvents: new(true),
				ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		if e := <-w.ResultChan(); e.Type != watch.Added {
			t.Fatalf("%v", e)
		}
		e := <-w.ResultChan()
		if e.Type != watch.Bookmark ||
			e.Object.(*corev1.ConfigMap).Annotations[metav1.InitialEventsAnnotationKey] != "true" ||
			e.Object.(*corev1.ConfigMap).ResourceVersion == "" {
			t.Fatalf("%v", e)
		}
		w.Stop()
	}
}

// An unknown client gets 401, one without the right gets 403, and a handler's panic ends only its own request.
func TestFilters(t *testing.T) {
	t.Parallel()
	url := start(t, nil)
	until(t, func() (bool, string) { // /readyz, below
		code, _, body := call(t, "GET", url+"/readyz?verbose", "")
		return code == 200, body
	})
	for _, c := range []struct {
		user, path string
		code       int
		message    string
	}{
		{"", "/api/v1/pods", 401, "Unauthorized"},
		{"bob", "/api/v1/namespaces/x/pods/p", 403,
			`pods \"p\" is forbidden: User \"bob\" cannot get resource \"pods\" in API group \"\" in the namespace \"x\"`},
		{"bob", "/metrics", 403, `forbidden: User \"bob\" cannot get path \"/metrics\"`},
		{"admin", "/panic", 500, "This request caused apiserver to panic"},
		{"admin", "/api/v1/pods?timeout=x", 400, "invalid timeout"},
		{"admin", "/api/v1/nothing", 404, "the server could not find the requested resource"},
		{"admin", "/apis/none/v1/nothing", 404, "404 page not found"},
		{"admin", "/readyz?verbose", 200,
			"[+]ping ok\n[+]log ok\n[+]poststarthook/start-apiextensions-informers ok\n[+]poststarthook/start-apiextensions-controllers ok\n[+]poststarthook/crd-informer-synced ok\n" +
				"[+]poststarthook/start-kube-aggregator-informers ok\n"},
		{"admin", "/readyz?verbose", 200,
			"[+]poststarthook/apiservice-openapiv3-controller ok\n[+]shutdown ok\nreadyz check passed\n"},
		{"admin", "/livez?verbose", 200,
			"[+]ping ok\n[+]log ok\n[+]loopback-serving-certificate ok\n[+]poststarthook/start-apiextensions-informers ok\n[+]poststarthook/start-apiextensions-controllers ok\n[+]poststarthook/crd-informer-synced ok\n" +
				"[+]poststarthook/start-kube-aggregator-informers ok\n"},
		{"admin", "/healthz?verbose", 200,
			"[+]poststarthook/apiservice-openapiv3-controller ok\nhealthz check passed\n"},
		{"admin", "/livez/ping", 200, "ok"},
		{"admin", "/metrics/slis", 200, `kubernetes_healthcheck{name="shutdown",type="readyz"} 1`},
		{"admin", "/metrics", 200, "apiserver_request_total"},
	} {
		resp, err := plain(c.user).Get(url + c.path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.code || !strings.Contains(string(b), c.message) {
			t.Errorf("%q %s: %d %s", c.user, c.path, resp.StatusCode, b)
		}
	}
}

func TestImpersonation(t *testing.T) {
	t.Parallel()
	url := start(t, nil)
	code, _, body := call(t, "GET", url+"/api/v1/nodes", "", "Impersonate-User", "bob")
	if code != 403 || !strings.Contains(body, `User \"bob\"`) {
		t.Errorf("admin as bob: %d %s", code, body)
	}
	r, _ := http.NewRequest("GET", url+"/api/v1/nodes", nil)
	r.Header.Set("Impersonate-User", "admin")
	resp, err := plain("bob").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 403 {
		t.Errorf("bob as admin: %d", resp.StatusCode)
	}
	for header, want := range map[string]string{
		"Impersonate-Group":     `Groups:[]string{\"x\"}, Extra:map[string][]string(nil)}`,
		"Impersonate-Uid":       `UID:\"x\", Groups:[]string(nil), Extra:map[string][]string(nil)}`,
		"Impersonate-Extra-Foo": `Groups:[]string(nil), Extra:map[string][]string{\"foo\":[]string{\"x\"}}}`,
	} {
		code, h, body := call(t, "GET", url+"/api/v1/nodes", "", header, "x")
		if code != 400 || !strings.Contains(body, `user.DefaultInfo{Name:\"\", UID:`) ||
			!strings.Contains(body, want+" without impersonating a user name") ||
			h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s without user: %d %v %s", header, code, h, body)
		}
	}
}

// impersonator may impersonate service accounts, and do everything else.
type impersonator struct{}

func (impersonator) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	if !strings.HasPrefix(a.Verb, "impersonate") || a.Resource == "serviceaccounts" && a.Namespace == "ns" {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// Only NAMESPACE:NAME behind the prefix is a service account; everything else is a user, and takes the right to
// impersonate users.
func TestImpersonatedAccounts(t *testing.T) {
	t.Parallel()
	url := start(t, func(c *assemble.Config) { c.Parts.Authorizer = impersonator{} })
	for user, want := range map[string]int{
		"system:serviceaccount:ns:sa": 200, "system:serviceaccount:other:sa": 403,
		"system:serviceaccount:ns:sa:more": 403, "system:serviceaccount:ns:": 403,
		"system:serviceaccount:ns": 403, "system:serviceaccount:": 403, "ns:sa": 403,
	} {
		if code, _, body := call(t, "GET", url+"/api/v1/nodes", "", "Impersonate-User", user); code != want {
			t.Errorf("as %s: %d %s", user, code, body)
		}
	}
}

// Bad bodies get the right Status and store nothing.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	url := start(t, nil)
	maps := url + "/api/v1/namespaces/ns/configmaps"
	for _, c := range []struct {
		query, body, media string
		code               int
		message            string
	}{
		{"", `{bad`, "application/json", 400, "couldn't get version/kind; json parse error: invalid character 'b'"},
		{"", ``, "application/json", 400, "unexpected end of JSON input (\\u003cempty\\u003e)"},
		{"", "a: b: c", "application/yaml", 400, "mapping values are not allowed"},
		{"", "k8s\x00\xff\xff", "application/vnd.kubernetes.protobuf", 400, "unrecognized"},
		{"", `{"metadata":{"name":"a"},"data":{"a":5}}`, "application/json", 400,
			"cannot unmarshal number into Go struct field ConfigMap.data of type string"},
		{"", `{"kind":"Pod","apiVersion":"v1"}`, "application/json", 400, "cannot be handled as a ConfigMap"},
		{"", `{"metadata":{"name":"a"}}`, "text/plain", 415, "accepted media types include: application/json"},
		{"?fieldValidation=Strict", `{"metadata":{"name":"a"},"foo":1,"foo":2}`, "application/json", 400,
			`strict decoding error: unknown field \"foo\"`},
		{"?fieldValidation=Strict", "metadata: {name: a}\ndata: {x: a, x: b}\n", "application/yaml", 400,
			"strict decoding error"},
		{"?fieldValidation=x", `{"metadata":{"name":"a"}}`, "application/json", 422,
			"fieldValidation: Unsupported value"},
		{"?dryRun=x", `{"metadata":{"name":"a"}}`, "application/json", 422, "dryRun: Unsupported value"},
		{"", strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000), "application/json", 400,
			"exceeded max depth"},
		{"", `{"metadata":{"name":"a"},"data":{"a":"` + strings.Repeat("x", 4<<20) + `"}}`, "application/json", 413,
			"limit is 3145728"},
	} {
		code, _, body := call(t, "POST", maps+c.query, c.body, "Content-Type", c.media)
		if code != c.code || !strings.Contains(body, c.message) {
			t.Errorf("%s %.60q: %d %.300s", c.query, c.body, code, body)
		}
	}
	if _, _, body := call(t, "GET", maps, ""); !strings.Contains(body, `"items":[]`) {
		t.Errorf("something was stored: %s", body)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	url := start(t, nil)
	code, h, _ := call(t, "POST", url+"/api/v1/namespaces/ns/configmaps", `{"metadata":{"name":"a"},"foo":1}`,
		"Content-Type", "application/json")
	if code != 201 || h.Get("Warning") != `299 - "unknown field \"foo\""` {
		t.Errorf("%d, Warning: %s", code, h.Get("Warning"))
	}
	if code, h, _ = call(t, "GET", url+"/api/v1/endpoints", ""); code != 200 ||
		!strings.Contains(h.Get("Warning"), "v1 Endpoints is deprecated") {
		t.Errorf("endpoints: %d, Warning: %s", code, h.Get("Warning"))
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	url := start(t, nil)
	maps := url + "/api/v1/namespaces/ns/configmaps"
	code, _, body := call(t, "POST", maps, "metadata: {name: a}\ndata: {x: z}\n", "Content-Type", "application/yaml",
		"Accept", "application/yaml")
	if code != 201 || !strings.Contains(body, "kind: ConfigMap") {
		t.Errorf("YAML: %d\n%s", code, body)
	}
	as := func(kind string) string { return "application/json;as=" + kind + ";v=v1;g=meta.k8s.io" }
	for accept, want := range map[string]string{
		"application/json":              `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"`,
		as("Table"):                     `"cells":["a",1,`,
		as("PartialObjectMetadataList"): `"items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"`,
	} {
		if _, _, body := call(t, "GET", maps, "", "Accept", accept); !strings.Contains(body, want) ||
			!json.Valid([]byte(body)) {
			t.Errorf("%s: %s", accept, body)
		}
	}
	if _, _, body := call(t, "GET", maps+"?pretty=true", ""); !strings.Contains(body, "\n  \"items\": [") {
		t.Errorf("pretty: %s", body)
	}
	// What YAML's reader refuses in JSON: DEL, C1, the byte order mark, and what is no character.
	if code, _, body := call(t, "POST", maps, `{"metadata":{"name":"odd"},"data":{"x":"\u007f\u009b\ufeff\uffff"}}`,
		"Content-Type", "application/json", "Accept", "application/yaml"); code != 201 ||
		!strings.Contains(body, `"\x7F\x9B\uFEFF\uFFFF"`) {
		t.Errorf("odd characters as YAML: %d\n%s", code, body)
	}
	if code, _, body := call(t, "GET", maps, "", "Accept", "application/yaml"); code != 200 ||
		!strings.Contains(body, "name: odd") || !strings.Contains(body, "name: a\n") {
		t.Errorf("a list with odd characters as YAML: %d\n%s", code, body)
	}
	if code, _, body := call(t, "GET", maps, "", "Accept", "text/html"); code != 406 ||
		!strings.HasPrefix(body, "{\n") {
		t.Errorf("HTML: %d", code)
	}
}

// events.k8s.io shows core events: what is written through one group is read through the other.
func TestView(t *testing.T) {
	t.Parallel()
	url := start(t, nil)
	ctx := t.Context()
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		c := client(t, url, "admin", contentType)
		w, err := c.EventsV1().Events("ns").Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := c.CoreV1().Events("ns").Create(ctx,
			&corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "e-", Namespace: "ns"}, Message: "hello",
				InvolvedObject: corev1.ObjectReference{Namespace: "ns", Name: "p"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.EventsV1().Events("ns").Get(ctx, e.Name, metav1.GetOptions{})
		if err != nil || got.Note != "hello" || got.ResourceVersion != e.ResourceVersion {
			t.Fatalf("get: %v, %v", got, err)
		}
		list, err := c.EventsV1().Events("ns").List(ctx, metav1.ListOptions{FieldSelector: "regarding.name=p"})
		if err != nil || len(list.Items) == 0 || list.Items[0].Regarding.Name != "p" {
			t.Fatalf("list: %v, %v", list, err)
		}
		if ev := <-w.ResultChan(); ev.Type != watch.Added {
			t.Fatalf("watch: %v", ev)
		}
		w.Stop()
	}
}

// A watch that is open when the server stops ends, and does not hold the server up.
func TestShutdownEndsWatches(t *testing.T) {
	t.Parallel()
	var body io.ReadCloser
	t.Run("server", func(t *testing.T) {
		url := start(t, nil)
		resp, err := plain("admin").Get(url + "/api/v1/pods?watch=1")
		if err != nil {
			t.Fatal(err)
		}
		body = resp.Body
	})
	b, err := io.ReadAll(body)
	if err != nil || !bytes.Equal(b, nil) {
		t.Errorf("the watch ended with %q, %v", b, err)
	}
}

// slow answers when it is released, by what has become of its request.
type slow struct{ came, release chan struct{} }

func (s slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	close(s.came)
	<-s.release
	if r.Context().Err() != nil {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// A request that is under way when the server stops is carried out and answered, while the watches have ended.
func TestShutdownAnswersRequests(t *testing.T) {
	t.Parallel()
	s := slow{make(chan struct{}), make(chan struct{})}
	code := make(chan int, 1)
	t.Run("server", func(t *testing.T) {
		url := start(t, func(c *assemble.Config) { c.Parts.Paths["/slow"] = s })
		watch, err := plain("admin").Get(url + "/api/v1/pods?watch=1")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer close(code)
			if answer, err := plain("admin").Get(url + "/slow"); err == nil {
				answer.Body.Close() //nolint:errcheck // only the code counts
				code <- answer.StatusCode
			}
		}()
		<-s.came
		go func() {
			_, _ = io.Copy(io.Discard, watch.Body)
			close(s.release)
		}()
	})
	if got := <-code; got != http.StatusOK {
		t.Errorf("the request was answered %d", got)
	}
}
