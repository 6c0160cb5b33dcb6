package apiserver_test

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	stdmaps "maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/defaulttolerationseconds"
	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/admission/priority"
	"bonsai/pkg/apiserver/admission/taintnodesbycondition"
	"bonsai/pkg/apiserver/admission/webhooks"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/registry/binding"
	"bonsai/pkg/apiserver/registry/eviction"
	"bonsai/pkg/apiserver/registry/kubeletproxy"
	"bonsai/pkg/apiserver/registry/scale"
	"bonsai/pkg/apiserver/serviceresolver"
	"bonsai/pkg/apiserver/webhook"
	"bonsai/pkg/apiserver/webhook/webhooktest"
)

// withWebhooks has the plug-ins that call webhooks, after those that can be seen in what webhooks are told.
func withWebhooks(t *testing.T, c *assemble.Config) {
	t.Helper()
	client := webhook.New(webhook.Config{
		Resolver: serviceresolver.New(late(c, "", "services"), late(c, "discovery.k8s.io", "endpointslices"))})
	hooks := webhooks.New(webhooks.Config{
		Mutating:   objects(c, "mutatingwebhookconfigurations"),
		Validating: objects(c, "validatingwebhookconfigurations"), Client: client, Log: slog.New(slog.DiscardHandler),
		Matcher: match.New(match.Config{Catalog: c.Catalog, Namespaces: late(c, "", "namespaces"),
			Authorizer: c.Parts.Authorizer, Log: slog.New(slog.DiscardHandler)}),
	})
	c.Parts.Admission = admission.NewChain(taintnodesbycondition.New(),
		priority.New(late(c, "scheduling.k8s.io", "priorityclasses")),
		defaulttolerationseconds.New(defaulttolerationseconds.Default, defaulttolerationseconds.Default),
		hooks.Mutating(), hooks.Validating())
	c.Parts.Runs = append(hooks.Runs(), client.Run)
}

// recorded is one request to a real kube-apiserver v1.37.2 with webhooks, its answer, and what the webhooks were asked.
type recorded struct {
	Name, Method, Path string
	Type, Body         string
	Hooks              []recordedHook
	Code               int
	Status             *struct{ Reason, Message string }
	Causes             []metav1.StatusCause
	Warnings           []string
	Object             any
	Seen               []seenReview
}

// recordedHook is a webhook and how it answers: with Body and Code, or with a review that allows the request and has
// More.
type recordedHook struct {
	Kind, More, Type string
	Body             *string
	Code             int
	Hook             map[string]any
}

type seenReview struct {
	Path   string
	Review any
}

// hookServer answers as the recorded webhooks do and notes what it is asked.
type hookServer struct {
	mu      sync.Mutex
	answers map[string]recordedHook
	seen    []seenReview
	marked  map[string]bool
}

func (h *hookServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var review struct {
		APIVersion string
		Request    struct{ UID string }
	}
	var raw any
	if json.Unmarshal(body, &review) != nil || json.Unmarshal(body, &raw) != nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	answer := h.answers[r.URL.Path]
	if strings.HasPrefix(r.URL.Path, "/marker-") {
		h.marked[r.URL.Path] = true
	} else {
		request := raw.(map[string]any)["request"].(map[string]any)
		request["userInfo"] = map[string]any{"username": request["userInfo"].(map[string]any)["username"]}
		one := seenReview{r.URL.String(), starred(raw, "")}
		if !slices.ContainsFunc(h.seen, func(s seenReview) bool { return reflect.DeepEqual(s, one) }) {
			h.seen = append(h.seen, one)
		}
	}
	text := fmt.Sprintf(`{"apiVersion":%q,"kind":"AdmissionReview","response":{"uid":"$UID","allowed":true}}`,
		review.APIVersion)
	if answer.More != "" {
		text = strings.TrimSuffix(text, "}}") + "," + answer.More + "}}"
	}
	if answer.Body != nil {
		text = *answer.Body
	}
	w.Header().Set("Content-Type", cmp.Or(answer.Type, "application/json"))
	w.WriteHeader(cmp.Or(answer.Code, http.StatusOK))
	io.WriteString(w, strings.ReplaceAll(text, "$UID", review.Request.UID)) //nolint:errcheck // the server sees it
}

var uidInText = regexp.MustCompile(`uid="[-0-9a-f]{36}"`)

// inScheme is a line of Kubernetes' source, which we do not name.
var inScheme = regexp.MustCompile(` in scheme "[^"]*"`)

// starred has what differs from run to run replaced; hook is the URL of the webhooks.
func starred(v any, hook string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			switch k {
			case "managedFields":
				continue
			case "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "clusterIP", "lastTransitionTime",
				"clusterIPs":
				if _, ok := e.(string); ok {
					out[k] = "*"
					continue
				}
			}
			out[k] = starred(e, hook)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = starred(v[i], hook)
		}
		return out
	case string:
		v = inScheme.ReplaceAllString(uidInText.ReplaceAllString(v, `uid="*"`), "")
		if hook != "" {
			v = strings.ReplaceAll(v, hook, "$HOOK")
		}
		return v
	}
	return v
}

// TestWebhooksReplay replays requests that a real kube-apiserver was asked while webhooks watched, and expects its
// answers and its questions.
func TestWebhooksReplay(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/webhooks.json")
	if err != nil {
		t.Fatal(err)
	}
	var steps []recorded
	if err := json.Unmarshal(raw, &steps); err != nil {
		t.Fatal(err)
	}
	hooks := &hookServer{marked: map[string]bool{}}
	server := webhooktest.NewServer(t, hooks)
	a := recordedServer(t, func(c *assemble.Config) {
		withWebhooks(t, c)
		withBehaviours(t, c)
	})("admin")
	if code, _, body := a.call(t, http.MethodPost, "/api/v1/namespaces",
		`{"metadata":{"name":"marker","labels":{"marker":"yes"}}}`, "application/json"); code != http.StatusCreated {
		t.Fatalf("%d %s", code, body)
	}
	waitForOwnServices(t, a)
	for _, s := range steps {
		kinds := configure(t, a, server, hooks, s.Hooks)
		code, header, body := a.call(t, s.Method, s.Path, s.Body, s.Type)
		hooks.mu.Lock()
		seen := slices.Clone(hooks.seen)
		hooks.mu.Unlock()
		unconfigure(t, a, hooks, kinds)
		compare(t, &s, code, header["Warning"], body, seen, server.URL)
	}
}

// waitForOwnServices waits until the server has made the APIServices of its own groups: webhooks for everything are
// asked about them, too.
func waitForOwnServices(t *testing.T, a asker) {
	t.Helper()
	items := func(path, field string) (n int, body string) {
		_, _, body = a.call(t, http.MethodGet, path, "", "")
		var answer map[string]json.RawMessage
		var list []struct{ Versions []struct{} }
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(answer[field], &list); err != nil {
			t.Fatal(err)
		}
		for _, i := range list {
			n += max(1, len(i.Versions))
		}
		return n, body
	}
	until(t, func() (bool, string) {
		made, body := items("/apis/apiregistration.k8s.io/v1/apiservices", "items")
		versions, _ := items("/apis", "groups")
		return made >= versions, fmt.Sprintf("%d APIServices for %d versions of groups: %s", made, versions, body)
	})
}

// compare tells how an answer and the questions differ from the recorded ones.
func compare(t *testing.T, want *recorded, code int, warnings []string, body string, seen []seenReview, hook string) {
	t.Helper()
	got := map[string]any{"code": code, "warnings": warnings,
		"questions": plainJSON(t, append([]seenReview{}, seen...))}
	expected := map[string]any{"code": want.Code, "warnings": want.Warnings, "questions": plainJSON(t, want.Seen)}
	var answer any
	if json.Unmarshal([]byte(body), &answer) != nil {
		answer = body
	}
	answer = starred(answer, hook)
	if m, ok := answer.(map[string]any); ok && m["kind"] == "Status" && want.Status != nil {
		details, _ := m["details"].(map[string]any)
		reason, _ := m["reason"].(string)
		message, _ := m["message"].(string)
		got["status"], got["causes"] = []any{reason, message}, details["causes"]
		expected["status"], expected["causes"] = []any{want.Status.Reason, want.Status.Message},
			plainJSON(t, want.Causes)
		if len(want.Causes) == 0 {
			expected["causes"] = nil
		}
	} else if want.Status == nil {
		got["object"], expected["object"] = answer, want.Object
	} else {
		got["status"] = body
	}
	if len(warnings) == 0 {
		delete(got, "warnings")
	}
	if len(want.Warnings) == 0 {
		delete(expected, "warnings")
	}
	for _, k := range slices.Sorted(stdmaps.Keys(got)) {
		if !reflect.DeepEqual(plainJSON(t, got[k]), plainJSON(t, expected[k])) {
			g, _ := json.Marshal(got[k])
			w, _ := json.Marshal(expected[k])
			t.Errorf("%s: %s %s: %s\ngot  %s\nwant %s", want.Name, want.Method, want.Path, k, g, w)
		}
	}
}

func plainJSON(t *testing.T, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(ofToday.ReplaceAll(b, []byte(`"*"`)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// ofToday is an age that is another one tomorrow.
var ofToday = regexp.MustCompile(`"\d+y\d+d"`)

const configurations = "/apis/admissionregistration.k8s.io/v1/"

// configure stores the configurations of hooks and waits until they are in force.
func configure(t *testing.T, a asker, server *webhooktest.Server, hooks *hookServer,
	wanted []recordedHook) (kinds []string) {
	t.Helper()
	answers := map[string]recordedHook{}
	all := map[string][]any{}
	for i, h := range wanted {
		path := fmt.Sprintf("/%s%d", h.Kind, i)
		answers[path] = h
		hook := hookAt(server, fmt.Sprintf("h%d.x.io", i), path,
			map[string]any{"matchExpressions": []any{map[string]any{"key": "hook", "operator": "Exists"}}})
		stdmaps.Copy(hook, h.Hook)
		kind := map[string]string{"m": "mutatingwebhookconfigurations", "v": "validatingwebhookconfigurations"}[h.Kind]
		all[kind] = append(all[kind], hook)
	}
	hooks.mu.Lock()
	hooks.answers, hooks.seen = answers, []seenReview{}
	hooks.mu.Unlock()
	for _, kind := range slices.Sorted(stdmaps.Keys(all)) {
		marker := hookAt(server, "marker.x.io", "/marker-"+kind,
			map[string]any{"matchLabels": map[string]any{"marker": "yes"}})
		doc, err := json.Marshal(
			map[string]any{"metadata": map[string]any{"name": "h"}, "webhooks": append(all[kind], marker)})
		if err != nil {
			t.Fatal(err)
		}
		if code, _, body := a.call(t, http.MethodPost, configurations+kind, string(doc),
			"application/json"); code != http.StatusCreated {
			t.Fatalf("%d %s", code, body)
		}
		waitForMarker(t, a, hooks, kind, true)
		kinds = append(kinds, kind)
	}
	return kinds
}

func unconfigure(t *testing.T, a asker, hooks *hookServer, kinds []string) {
	t.Helper()
	for _, kind := range kinds {
		if code, _, body := a.call(t, http.MethodDelete, configurations+kind+"/h", "",
			"application/json"); code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
		waitForMarker(t, a, hooks, kind, false)
	}
}

func hookAt(server *webhooktest.Server, name, path string, namespaces map[string]any) map[string]any {
	return map[string]any{
		"name": name, "clientConfig": map[string]any{"url": server.URL + path,
			"caBundle": base64.StdEncoding.EncodeToString(server.CABundle)},
		"sideEffects": "None", "admissionReviewVersions": []string{"v1"}, "namespaceSelector": namespaces,
		"rules": []any{map[string]any{"operations": []string{"*"}, "apiGroups": []string{"*"},
			"apiVersions": []string{"*"}, "resources": []string{"*/*"}}},
	}
}

// asker asks over connections that stay.
type asker struct {
	*http.Client
	url string
}

func (a asker) call(t *testing.T, method, path, body, media string) (int, http.Header, string) {
	t.Helper()
	return a.callWith(t, method, path, body, http.Header{"Content-Type": {media}})
}

// callWith is call with other headers, which it takes over.
func (a asker) callWith(t *testing.T, method, path, body string, header http.Header) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	resp, err := a.Do(r)
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

// waitForMarker asks until the configuration of the kind is in force, or is not any more.
func waitForMarker(t *testing.T, a asker, hooks *hookServer, kind string, want bool) {
	t.Helper()
	until(t, func() (bool, string) {
		hooks.mu.Lock()
		delete(hooks.marked, "/marker-"+kind)
		hooks.mu.Unlock()
		if code, _, body := a.call(t, http.MethodPost, "/api/v1/namespaces/marker/configmaps?dryRun=All",
			`{"metadata":{"name":"a"}}`, "application/json"); code != http.StatusCreated {
			t.Fatalf("marker: %d %s", code, body)
		}
		hooks.mu.Lock()
		defer hooks.mu.Unlock()
		return hooks.marked["/marker-"+kind] == want, fmt.Sprintf("%s do not come into force: %v", kind, want)
	})
}

// withBehaviours has the subresources that are connected, bound, evicted and scaled.
func withBehaviours(t *testing.T, c *assemble.Config) {
	t.Helper()
	proxy, err := kubeletproxy.New(kubeletproxy.Config{Stores: c.Catalog})
	if err != nil {
		t.Fatal(err)
	}
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	scales, err := scale.New(c.Catalog, deployments)
	if err != nil {
		t.Fatal(err)
	}
	c.Parts.Behaviours[deployments] = assemble.Behaviour{
		Answers: catalog.Answers{Subresources: map[string]registry.Answerer{"scale": {ReadWriter: scales}}}}
	c.Parts.Behaviours[corev1.Resource("pods")] = assemble.Behaviour{
		Answers: catalog.Answers{Subresources: map[string]registry.Answerer{
			"binding":  {Creater: binding.New(c.Catalog, time.Now)},
			"eviction": {Creater: eviction.New(c.Catalog, time.Now)},
			"log":      {Connecter: proxy.Log()}, "exec": {Connecter: proxy.Exec()},
			"attach":      {Connecter: proxy.Attach()},
			"portforward": {Connecter: proxy.PortForward()}, "proxy": {Connecter: proxy.Pod()},
		}}}
	c.Parts.Behaviours[corev1.Resource("services")] = assemble.Behaviour{
		Answers: catalog.Answers{Subresources: map[string]registry.Answerer{"proxy": {Connecter: proxy.Service()}}}}
}
