package apiserver_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/webhook/webhooktest"
)

// convert is a conversion webhook that does as its path says.
func convert(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID               string           `json:"uid"`
			DesiredAPIVersion string           `json:"desiredAPIVersion"`
			Objects           []map[string]any `json:"objects"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := map[string]any{"uid": review.Request.UID, "result": map[string]any{"status": "Success"}}
	objects := review.Request.Objects
	for _, o := range objects {
		rename(o, review.Request.DesiredAPIVersion)
	}
	meta := func(o map[string]any) map[string]any { return o["metadata"].(map[string]any) }
	how := strings.TrimPrefix(r.URL.Path, "/")
	if how != "good" && len(objects) > 0 {
		first := objects[0]
		switch how {
		case "loses":
			objects = objects[1:]
		case "adds":
			objects = append(objects, first)
		case "renames":
			meta(first)["name"] = "other"
		case "moves":
			meta(first)["namespace"] = "other"
		case "swaps-uid":
			meta(first)["uid"] = "11111111-2222-3333-4444-555555555555"
		case "rekinds":
			first["kind"] = "Other"
		case "stays":
			first["apiVersion"] = "conversion.example.com/v9"
		case "empties":
			objects[0] = map[string]any{}
		case "no-metadata":
			delete(first, "metadata")
		case "labels":
			meta(first)["labels"] = map[string]any{"converted": "yes"}
			meta(first)["annotations"] = map[string]any{"converted": "yes"}
			meta(first)["finalizers"] = []any{"no.example.com/x"}
			meta(first)["generation"] = 77
		case "bad-labels":
			meta(first)["labels"] = map[string]any{"not valid": "-"}
		case "number-labels":
			meta(first)["labels"] = map[string]any{"a": 1}
		case "fails":
			response["result"] = map[string]any{"status": "Failure", "message": "no, thank you"}
		case "fails-silently":
			response["result"] = map[string]any{"status": "Failure"}
		case "other-uid":
			response["uid"] = "other"
		case "no-response":
			response = nil
		case "error":
			http.Error(w, "out of order", http.StatusInternalServerError)
			return
		}
	}
	if response != nil {
		response["convertedObjects"] = objects
	}
	w.Header().Set("Content-Type", "application/json")
	// the server sees it
	_ = json.NewEncoder(w).Encode(
		map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "response": response})
}

// TestSelectionAsksTheWebhookOnce: what objects are selected by in a version that a webhook converts to is asked of it
// for many objects together, and not again by the next list or by another watcher.
func TestSelectionAsksTheWebhookOnce(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	hook := webhooktest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		convert(w, r)
	}))
	a := asker{plain("admin"), start(t, func(c *assemble.Config) {
		withCache(t, c)
		withBehaviours(t, c)
	})}
	ask := func(method, path, body string, want int) string {
		t.Helper()
		code, _, answer := a.call(t, method, path, body, "application/json")
		if code != want {
			t.Fatalf("%s %s: %d %s", method, path, code, answer)
		}
		return answer
	}
	schema := func(field string) string {
		return `"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"` +
			field + `":{"type":"string"}}}}}}`
	}
	definition := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.once.example.com"},"spec":{"group":"once.example.com",
		"scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,` + schema("text") + `},
		{"name":"v2","served":true,"storage":false,` + schema("content") + `,"selectableFields":[{"jsonPath":".spec.content"}]}],
		"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"` + hook.URL + `/good","caBundle":"` +
		base64.StdEncoding.EncodeToString(hook.CABundle) + `"}}}}}`
	const objects, v2 = 40, "/apis/once.example.com/v2/namespaces/default/widgets"
	play(t, a, hook, []customStep{{Do: "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", Raw: definition},
		{Do: "GET " + v2, Until: "200 "}})
	for i := range objects {
		ask(http.MethodPost, "/apis/once.example.com/v1/namespaces/default/widgets",
			fmt.Sprintf(`{"apiVersion":"once.example.com/v1","kind":"Widget","metadata":{"name":"w%d"},"spec":{"text":"t%d"}}`, i, i%2), http.StatusCreated)
	}
	selected := v2 + "?fieldSelector=spec.content%3Dt1"
	if got := strings.Count(ask(http.MethodGet, selected, "", http.StatusOK), `"name":"w`); got != objects/2 {
		t.Errorf("%d of %d objects are selected", got, objects/2)
	}
	if n := calls.Swap(0); n != 1 { // to choose; what is shown is the same
		t.Errorf("the webhook was called %d times for a list", n)
	}
	if ask(http.MethodGet, v2+"?fieldSelector=spec.content%3Dnone", "", http.StatusOK); calls.Load() != 0 {
		t.Error("the webhook was called for objects of which is known what they are selected by")
	}
	var next []func() event
	for range 5 {
		next = append(next, watching(t, a.url+v2+"?watch=1&fieldSelector=spec.content%3Dchanged", "Test-User", "admin"))
	}
	ask(http.MethodPut, "/apis/once.example.com/v1/namespaces/default/widgets/w0", strings.Replace(
		ask(http.MethodGet, "/apis/once.example.com/v1/namespaces/default/widgets/w0", "", http.StatusOK), `"t0"`,
		`"changed"`, 1), http.StatusOK)
	for _, wait := range next {
		if e := wait(); e.Type != "ADDED" {
			t.Errorf("a watcher sees %s", e.Type)
		}
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("the webhook was called %d times for a change that 5 watch", n)
	}
}

// TestConvertedObjectsAreKept: clients pay once for what a webhook converts, by calls for many objects together, and
// have it while the webhook is out of reach.
func TestConvertedObjectsAreKept(t *testing.T) {
	t.Parallel()
	var calls, objects atomic.Int32
	var down atomic.Bool
	hook := webhooktest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "out of order", http.StatusServiceUnavailable)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		calls.Add(1)
		objects.Add(int32(strings.Count(string(body), `"kind":"Widget"`)))
		r.Body = io.NopCloser(bytes.NewReader(body))
		convert(w, r)
	}))
	a := asker{plain("admin"), start(t, func(c *assemble.Config) {
		withCache(t, c)
		withBehaviours(t, c)
	})}
	accepting := func(accept, method, path, body string, want int) string {
		t.Helper()
		code, _, answer := a.callWith(t, method, path, body,
			http.Header{"Accept": {accept}, "Content-Type": {"application/json"}})
		if code != want {
			t.Fatalf("%s %s: %d %s", method, path, code, answer)
		}
		return answer
	}
	ask := func(method, path, body string, want int) string {
		t.Helper()
		return accepting("application/json", method, path, body, want)
	}
	schema := func(field string) string {
		return `"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"` +
			field + `":{"type":"string"}}}}}}`
	}
	definition := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.kept.example.com"},"spec":{"group":"kept.example.com",
		"scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,` + schema("text") + `},
		{"name":"v2","served":true,"storage":false,` + schema("content") + `,"additionalPrinterColumns":[{"name":"Content","type":"string","jsonPath":".spec.content"}]}],
		"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"` + hook.URL + `/good","caBundle":"` +
		base64.StdEncoding.EncodeToString(hook.CABundle) + `"}}}}}`
	const count, v1, v2 = 40, "/apis/kept.example.com/v1/namespaces/default/widgets",
		"/apis/kept.example.com/v2/namespaces/default/widgets"
	play(t, a, hook, []customStep{{Do: "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", Raw: definition},
		{Do: "GET " + v2, Until: "200 "}})
	for i := range count {
		ask(http.MethodPost, v1,
			fmt.Sprintf(`{"apiVersion":"kept.example.com/v1","kind":"Widget","metadata":{"name":"w%d"},"spec":{"text":"t%d"}}`, i, i), http.StatusCreated)
	}
	initial := func() func() event {
		t.Helper()
		next := watching(t, a.url+v2+
			"?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "Test-User",
			"admin")
		for range count {
			if e := next(); e.Type != "ADDED" || e.Object.APIVersion != "kept.example.com/v2" {
				t.Fatalf("an initial event is %+v", e)
			}
		}
		if e := next(); e.Type != "BOOKMARK" {
			t.Fatalf("the initial events end with %+v", e)
		}
		return next
	}
	look := func() {
		t.Helper()
		if got := strings.Count(ask(http.MethodGet, v2, "", http.StatusOK), `"content":"t`); got != count {
			t.Errorf("%d objects are listed", got)
		}
		if got := strings.Count(ask(http.MethodGet, v2+"?limit=10", "", http.StatusOK), `"content":"t`); got != 10 {
			t.Errorf("%d objects are on a page", got)
		}
		if got := strings.Count(
			accepting("application/json;as=Table;g=meta.k8s.io;v=v1", http.MethodGet, v2, "", http.StatusOK),
			`"cells":["w`); got != count {
			t.Errorf("%d objects are in a table", got)
		}
		ask(http.MethodGet, v2+"/w0", "", http.StatusOK)
		initial()
	}
	next := initial()
	if c, o := calls.Swap(0), objects.Swap(0); c > 3 || o != count {
		t.Errorf("the webhook was called %d times with %d objects for the initial events of %d", c, o, count)
	}
	if look(); calls.Load() != 0 {
		t.Errorf("the webhook was called %d times for what it had converted", calls.Load())
	}
	down.Store(true)
	look()
	ask(http.MethodDelete, v1+"/w1", "", http.StatusOK)
	if e := next(); e.Type != "DELETED" || e.Object.Name != "w1" || e.Object.APIVersion != "kept.example.com/v2" {
		t.Errorf("a deletion while the webhook is down is seen as %+v", e)
	}
	ask(http.MethodPost, v1,
		`{"apiVersion":"kept.example.com/v1","kind":"Widget","metadata":{"name":"late"},"spec":{"text":"t"}}`,
		http.StatusCreated)
	if e := next(); e.Type != "ERROR" {
		t.Errorf("an object that was never converted is seen as %+v", e)
	}
	ask(http.MethodGet, v2, "", http.StatusInternalServerError)
}

// rename makes an object of the version to: what v1 has as spec.text is spec.content in v2.
func rename(o map[string]any, to string) {
	from, into := "text", "content"
	if strings.HasSuffix(to, "/v1") {
		from, into = into, from
	}
	if in, ok := o["spec"].(map[string]any); ok {
		if v, ok := in[from]; ok {
			in[into] = v
			delete(in, from)
		}
	}
	o["apiVersion"] = to
}

// Why the objects of a definition cannot be deleted is said without the keys that they have in etcd.
func TestDrainKeepsKeysToItself(t *testing.T) {
	t.Parallel()
	hook := webhooktest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusServiceUnavailable)
	}))
	a := asker{plain("admin"), start(t, func(c *assemble.Config) {
		withCache(t, c)
		withBehaviours(t, c)
	})}
	definition := func(stored string) string {
		versions := ""
		for _, v := range []string{"v1", "v2"} {
			versions += fmt.Sprintf(
				`{"name":%q,"served":true,"storage":%v,"schema":{"openAPIV3Schema":{"type":"object"}}},`, v,
				v == stored)
		}
		return `{"spec":{"group":"drain.example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[` + strings.TrimSuffix(versions, ",") + `],
			"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"` + hook.URL + `","caBundle":"` +
			base64.StdEncoding.EncodeToString(hook.CABundle) + `"}}}}}`
	}
	const definitions, v1 = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		"/apis/drain.example.com/v1/namespaces/default/widgets"
	named := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.drain.example.com"},` + definition("v1")[1:]
	if code, _, answer := a.call(t, http.MethodPost, definitions, named,
		"application/json"); code != http.StatusCreated {
		t.Fatal(code, answer)
	}
	play(t, a, hook, []customStep{{Do: "GET " + v1, Until: "200 "}})
	one := definitions + "/widgets.drain.example.com"
	for _, step := range []struct{ method, path, body, media string }{
		{http.MethodPost, v1, `{"apiVersion":"drain.example.com/v1","kind":"Widget","metadata":{"name":"w"}}`,
			"application/json"},
		{http.MethodPatch, one, definition("v2"), "application/merge-patch+json"},
		{http.MethodDelete, one, "", "application/json"},
	} {
		if code, _, answer := a.call(t, step.method, step.path, step.body, step.media); code >= 300 {
			t.Fatalf("%s %s: %d %s", step.method, step.path, code, answer)
		}
	}
	// The condition comes and goes while the deletion is tried again, so it is awaited with its message.
	const why = "could not delete all instances: decode stored Widget: conversion webhook"
	play(t, a, hook, []customStep{{Do: "GET " + one, Until: why}})
}
