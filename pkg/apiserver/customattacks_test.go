package apiserver_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/webhook/webhooktest"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// customHouse is a server with the parts of Kubernetes, asked by its administrator.
func customHouse(t *testing.T) house {
	t.Helper()
	url := start(t, func(c *assemble.Config) {
		withCache(t, c)
		withParts(t, c)
	})
	return house{t, asker{&http.Client{Transport: bearer{"auditadm", plain("").Transport}}, url},
		asker{&http.Client{Transport: bearer{"auditali", plain("").Transport}}, url}}
}

type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

type house struct {
	t            *testing.T
	admin, alice asker
}

// ask makes a request and expects a code.
func (h house) ask(by asker, method, path, body string, want int) string {
	h.t.Helper()
	media := "application/json"
	if method == http.MethodPatch {
		media = "application/merge-patch+json"
	}
	code, _, answer := by.call(h.t, method, path, body, media)
	if code != want {
		h.t.Fatalf("%s %s: %d %.600s, want %d", method, path, code, answer, want)
	}
	return answer
}

// until repeats a request until it is answered with a code.
func (h house) until(by asker, method, path, body string, want int) {
	h.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		code, _, answer := by.call(h.t, method, path, body, "application/json")
		if code == want {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("%s %s is still answered %d %.300s", method, path, code, answer)
		}
	}
}

// definition is one of a kind in two versions that differ by their name.
func definition(group, schema string) string {
	version := func(name string, stored bool) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%v,"schema":{"openAPIV3Schema":%s}}`, name, stored,
			schema)
	}
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"ws.%s"},"spec":{"group":%q,"scope":"Namespaced","names":{"plural":"ws","kind":"W"},"versions":[%s,%s]}}`,
		group, group, version("v1", true), version("v2", false))
}

const anything = `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`

// Rights, quotas and watches hold for custom resources as for others: rights are given by group and resource, a quota
// counts objects of all versions, and a watch in each version sees the same changes in its own.
func TestCustomResourcesAreResources(t *testing.T) {
	t.Parallel()
	h := customHouse(t)
	h.ask(h.admin, http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"a"}}`, http.StatusCreated)
	h.ask(h.admin, http.MethodPost, definitionsPath, definition("ex.io", anything), http.StatusCreated)
	const v1, v2 = "/apis/ex.io/v1/namespaces/a/ws", "/apis/ex.io/v2/namespaces/a/ws"
	h.until(h.admin, http.MethodGet, v2, "", http.StatusOK)

	h.ask(h.alice, http.MethodGet, v1, "", http.StatusForbidden)
	rbac := "/apis/rbac.authorization.k8s.io/v1/namespaces/a/"
	h.ask(h.admin, http.MethodPost, rbac+"roles",
		`{"metadata":{"name":"r"},"rules":[{"apiGroups":["ex.io"],"resources":["ws"],"verbs":["get","list"]}]}`,
		http.StatusCreated)
	h.ask(h.admin, http.MethodPost, rbac+"rolebindings",
		`{"metadata":{"name":"r"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"alice","apiGroup":"rbac.authorization.k8s.io"}]}`, http.StatusCreated)
	h.until(h.alice, http.MethodGet, v2, "", http.StatusOK)
	h.ask(h.alice, http.MethodPost, v1, `{"apiVersion":"ex.io/v1","kind":"W","metadata":{"name":"x"}}`,
		http.StatusForbidden)
	h.ask(h.alice, http.MethodGet, "/apis/ex.io/v1/ws", "", http.StatusForbidden)

	first, second := watching(t, h.admin.url+v1+"?watch=1", "Authorization", "Bearer auditadm"),
		watching(t, h.admin.url+v2+"?watch=1", "Authorization", "Bearer auditadm")
	quotas := "/api/v1/namespaces/a/resourcequotas"
	h.ask(h.admin, http.MethodPost, quotas, `{"metadata":{"name":"q"},"spec":{"hard":{"count/ws.ex.io":"1"}}}`,
		http.StatusCreated)
	h.ask(h.admin, http.MethodPatch, quotas+"/q/status",
		`{"status":{"hard":{"count/ws.ex.io":"1"},"used":{"count/ws.ex.io":"0"}}}`, http.StatusOK)
	h.ask(h.admin, http.MethodPost, v2, `{"apiVersion":"ex.io/v2","kind":"W","metadata":{"name":"x"},"spec":{"s":1}}`,
		http.StatusCreated)
	if answer := h.ask(h.admin, http.MethodPost, v1, `{"apiVersion":"ex.io/v1","kind":"W","metadata":{"name":"y"}}`,
		http.StatusForbidden); !strings.Contains(answer,
		"exceeded quota: q, requested: count/ws.ex.io=1, used: count/ws.ex.io=1, limited: count/ws.ex.io=1") {
		t.Error(answer)
	}
	h.ask(h.admin, http.MethodPatch, v1+"/x", `{"spec":{"s":2}}`, http.StatusOK)
	h.ask(h.admin, http.MethodDelete, v2+"/x", "", http.StatusOK)
	for version, next := range map[string]func() event{"ex.io/v1": first, "ex.io/v2": second} {
		for _, want := range []string{"ADDED", "MODIFIED", "DELETED"} {
			e := next()
			if text, err := json.Marshal(e.Object); err != nil || e.Type != want ||
				!strings.Contains(string(text), `"apiVersion":"`+version+`"`) {
				t.Errorf("in %s: %s %s, want %s", version, e.Type, text, want)
			}
		}
	}
}

// What is too large is refused or served, in bounded time, and nothing of it stays half.
func TestLargeCustomResources(t *testing.T) {
	t.Parallel()
	h := customHouse(t)
	h.ask(h.admin, http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"a"}}`, http.StatusCreated)
	var wide strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&wide, `,"p%d":{"type":"string","maxLength":%d}`, i, i+1)
	}
	begun := time.Now()
	h.ask(h.admin, http.MethodPost, definitionsPath,
		definition("wide.io", `{"type":"object","properties":{"spec":{"type":"object","properties":{`+wide.String()[1:]+
			`}}}}`), http.StatusCreated)
	const ws = "/apis/wide.io/v1/namespaces/a/ws"
	h.until(h.admin, http.MethodGet, ws, "", http.StatusOK)
	h.ask(h.admin, http.MethodPost, ws,
		`{"apiVersion":"wide.io/v1","kind":"W","metadata":{"name":"x"},"spec":{"p9":"1234567890"}}`, http.StatusCreated)
	if answer := h.ask(h.admin, http.MethodPost, ws,
		`{"apiVersion":"wide.io/v1","kind":"W","metadata":{"name":"y"},"spec":{"p1":"1234567890"}}`,
		http.StatusUnprocessableEntity); !strings.Contains(answer, "spec.p1: Too long") {
		t.Error(answer)
	}
	if took := time.Since(begun); took > 2*time.Minute {
		t.Errorf("10,000 properties take %v", took)
	}
	h.ask(h.admin, http.MethodPost, definitionsPath,
		definition("long.io", `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"description":"`+
			strings.Repeat("x", 1<<19)+`"}`), http.StatusCreated)
	h.until(h.admin, http.MethodGet, "/apis/long.io/v1/namespaces/a/ws", "", http.StatusOK)
	object := func(name string, size int) string {
		return `{"apiVersion":"long.io/v1","kind":"W","metadata":{"name":"` + name + `"},"spec":{"s":"` +
			strings.Repeat("x", size) + `"}}`
	}
	const long = "/apis/long.io/v1/namespaces/a/ws"
	h.ask(h.admin, http.MethodPost, long, object("small", 1<<20), http.StatusCreated)
	h.ask(h.admin, http.MethodPost, long, object("large", 3<<20), http.StatusRequestEntityTooLarge)
	h.ask(h.admin, http.MethodPost, long,
		`{"apiVersion":"long.io/v1","kind":"W","metadata":{"name":"many"},"spec":{"s":[`+strings.Repeat("0,", 200_000)+
			`0]}}`, http.StatusRequestEntityTooLarge)
	for name, want := range map[string]int{"small": http.StatusOK, "large": http.StatusNotFound,
		"many": http.StatusNotFound} {
		h.ask(h.admin, http.MethodGet, long+"/"+name, "", want)
	}
	// managedFields themselves: what is none is not taken.
	for _, of := range []string{
		`[{"manager":"m","operation":"Nope","apiVersion":"long.io/v1","fieldsType":"FieldsV1","fieldsV1":{}}]`,
		`[{"manager":"m","operation":"Update","apiVersion":"long.io/v1","fieldsType":"FieldsV2","fieldsV1":{}}]`,
		`[{}]`} {
		h.ask(h.admin, http.MethodPatch, long+"/small", `{"metadata":{"managedFields":`+of+`}}`, http.StatusOK)
		if answer := h.ask(h.admin, http.MethodGet, long+"/small", "",
			http.StatusOK); strings.Contains(answer, "Nope") || strings.Contains(answer, "FieldsV2") {
			t.Errorf("%s is stored", of)
		}
	}
}

// A definition that has the name of what the server itself has, in another version or in none, takes nothing of it
// along when it goes.
func TestDefinitionOfOurOwn(t *testing.T) {
	t.Parallel()
	h := customHouse(t)
	const own = "apiextensions.k8s.io"
	h.ask(h.admin, http.MethodPost, definitionsPath, definition("stays.io", anything), http.StatusCreated)
	for i, served := range []bool{true, false} {
		crd := fmt.Sprintf(`{"metadata":{"name":"customresourcedefinitions.%[1]s","annotations":{"api-approved.kubernetes.io":"unapproved, test"}},"spec":{"group":%[1]q,"scope":"Cluster",
			"names":{"plural":"customresourcedefinitions","kind":"Mine%[2]d"},"versions":[{"name":"v7","served":%[3]v,"storage":true,"schema":{"openAPIV3Schema":%[4]s}}]}}`, own, i, served, anything)
		h.ask(h.admin, http.MethodPost, definitionsPath, crd, http.StatusCreated)
		const at = definitionsPath + "/customresourcedefinitions." + own
		for deadline := time.Now().Add(30 * time.Second); ; {
			if answer := h.ask(h.admin, http.MethodGet, at, "",
				http.StatusOK); strings.Contains(answer, `"type":"NamesAccepted"`) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("nobody looks at the definition")
			}
		}
		h.ask(h.admin, http.MethodDelete, at, "", http.StatusOK)
		h.until(h.admin, http.MethodGet, at, "", http.StatusNotFound)
		if answer := h.ask(h.admin, http.MethodGet, definitionsPath+"/ws.stays.io", "",
			http.StatusOK); strings.Contains(answer, "deletionTimestamp") {
			t.Fatal(answer)
		}
	}
}

// With a definition that serves none of its versions any more go its objects, so that the next one of its name does not
// find them.
func TestUnservedObjectsGo(t *testing.T) {
	t.Parallel()
	h := customHouse(t)
	h.ask(h.admin, http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"a"}}`, http.StatusCreated)
	defined := definition("unserved.io", anything)
	h.ask(h.admin, http.MethodPost, definitionsPath, defined, http.StatusCreated)
	const ws = "/apis/unserved.io/v1/namespaces/a/ws"
	h.until(h.admin, http.MethodGet, ws, "", http.StatusOK)
	h.ask(h.admin, http.MethodPost, ws, `{"apiVersion":"unserved.io/v1","kind":"W","metadata":{"name":"x"}}`,
		http.StatusCreated)
	h.ask(h.admin, http.MethodPost, ws,
		`{"apiVersion":"unserved.io/v1","kind":"W","metadata":{"name":"held","finalizers":["example.com/hold"]}}`,
		http.StatusCreated)
	var crd struct {
		Spec map[string]any `json:"spec"`
	}
	if err := json.Unmarshal([]byte(defined), &crd); err != nil {
		t.Fatal(err)
	}
	serve := func(is bool) string {
		for _, v := range crd.Spec["versions"].([]any) {
			v.(map[string]any)["served"] = is
		}
		text, err := json.Marshal(map[string]any{"spec": crd.Spec})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const at = definitionsPath + "/ws.unserved.io"
	h.ask(h.admin, http.MethodPatch, at, serve(false), http.StatusOK)
	h.until(h.admin, http.MethodGet, ws, "", http.StatusNotFound)
	h.ask(h.admin, http.MethodDelete, at, "", http.StatusOK)
	// What has a finalizer keeps the definition, which can be served again to be rid of it.
	h.until(h.admin, http.MethodGet, at, "", http.StatusOK)
	h.ask(h.admin, http.MethodPatch, at, serve(true), http.StatusOK)
	h.until(h.admin, http.MethodGet, ws+"/x", "", http.StatusNotFound)
	h.until(h.admin, http.MethodGet, ws+"/held", "", http.StatusOK)
	h.ask(h.admin, http.MethodPatch, ws+"/held", `{"metadata":{"finalizers":null}}`, http.StatusOK)
	h.until(h.admin, http.MethodGet, at, "", http.StatusNotFound)

	h.ask(h.admin, http.MethodPost, definitionsPath, defined, http.StatusCreated)
	h.until(h.admin, http.MethodGet, ws, "", http.StatusOK)
	if answer := h.ask(h.admin, http.MethodGet, ws, "", http.StatusOK); strings.Contains(answer, `"name":"`) {
		t.Error(answer)
	}
}

// Definitions that come and go leave nothing behind: no goroutine, no watch, and no memory to speak of.
func TestChurnOfDefinitions(t *testing.T) { // not parallel: it counts goroutines and memory
	h := customHouse(t)
	churn := func(from, to int) {
		for i := from; i < to; i++ {
			group := fmt.Sprintf("g%d.io", i)
			h.ask(h.admin, http.MethodPost, definitionsPath, definition(group, anything), http.StatusCreated)
		}
		for i := from; i < to; i++ {
			group := fmt.Sprintf("g%d.io", i)
			h.until(h.admin, http.MethodGet, "/apis/"+group+"/v1/namespaces/a/ws", "", http.StatusOK)
			h.ask(h.admin, http.MethodDelete, definitionsPath+"/ws."+group, "", http.StatusOK)
		}
		for i := from; i < to; i++ {
			h.until(h.admin, http.MethodGet, definitionsPath+fmt.Sprintf("/ws.g%d.io", i), "", http.StatusNotFound)
			h.until(h.admin, http.MethodGet, fmt.Sprintf("/apis/g%d.io/v1/namespaces/a/ws", i), "", http.StatusNotFound)
		}
	}
	churn(0, 20) // what is made once
	routines, heap := runtime.NumGoroutine(), inUse()
	churn(20, 120)
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > routines+20; {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, and %d before 100 definitions", runtime.NumGoroutine(), routines)
		}
		runtime.Gosched()
	}
	if now := inUse(); now > heap+100*50<<10 {
		t.Errorf("100 definitions that are gone leave %d KB", (now-heap)>>10)
	}
}

// A conversion webhook that sends a hundred megabytes, or nothing, costs no more than it may, and only who asks for
// what it converts.
func TestConversionAttacks(t *testing.T) { // not parallel: it counts what is allocated
	var sent atomic.Int64
	hook := webhooktest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if r.URL.Path == "/never" {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		chunk := []byte(strings.Repeat("x", 1<<20))
		fmt.Fprint(w, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"convertedObjects":[{"spec":"`)
		for range 100 {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	h := customHouse(t)
	by := func(path string) string {
		return fmt.Sprintf(`{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":%q,"caBundle":%q}}}}}`,
			hook.URL+path, base64.StdEncoding.EncodeToString(hook.CABundle))
	}
	h.ask(h.admin, http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"a"}}`, http.StatusCreated)
	h.ask(h.admin, http.MethodPost, definitionsPath, definition("conv.io", anything), http.StatusCreated)
	const v1, v2 = "/apis/conv.io/v1/namespaces/a/ws", "/apis/conv.io/v2/namespaces/a/ws"
	h.until(h.admin, http.MethodGet, v2, "", http.StatusOK)
	h.ask(h.admin, http.MethodPost, v1, `{"apiVersion":"conv.io/v1","kind":"W","metadata":{"name":"x"}}`,
		http.StatusCreated)

	h.ask(h.admin, http.MethodPatch, definitionsPath+"/ws.conv.io", by("/huge"), http.StatusOK)
	h.until(h.admin, http.MethodGet, v2+"/x", "", http.StatusInternalServerError)
	for _, path := range []string{v2 + "/x", v2} {
		before := allocated()
		if answer := h.ask(h.admin, http.MethodGet, path, "",
			http.StatusInternalServerError); !strings.Contains(answer,
			"conversion webhook for conv.io/v1, Kind=W failed: the response is longer than") {
			t.Error(answer)
		}
		// the webhook's own megabyte and both ends' buffers among it
		if cost := (allocated() - before) >> 20; cost > 40 {
			t.Errorf("%s costs %d MiB", path, cost)
		}
	}
	if n := sent.Load() >> 20; n > 3*30 {
		t.Errorf("%d MiB were taken", n)
	}

	h.ask(h.admin, http.MethodPatch, definitionsPath+"/ws.conv.io", by("/never"), http.StatusOK)
	for deadline := time.Now().Add(30 * time.Second); ; {
		code, _, answer := h.admin.call(t, http.MethodGet, v2+"/x?timeout=200ms", "", "application/json")
		if code != http.StatusOK && strings.Contains(answer, "deadline exceeded") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d %s", code, answer)
		}
	}
	h.ask(h.admin, http.MethodGet, v1+"/x", "", http.StatusOK) // which needs no conversion
	h.ask(h.admin, http.MethodGet, v1, "", http.StatusOK)
}
