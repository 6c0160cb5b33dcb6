package apiserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/watchcache"
)

// overCache puts a server on a cache over memory.
func overCache(t *testing.T) func(*assemble.Config) {
	t.Helper()
	facts := &storage.FactsTable{}
	cache, err := watchcache.New(context.WithoutCancel(t.Context()), memory.New(facts), watchcache.Config{Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	served, err := catalog.New(t.Context(), catalog.Config{Facts: facts, Forget: cache.Forget})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *assemble.Config) { c.Catalog, c.Storage = served, cache }
}

// A resource that is added is served at once, under all its paths and in discovery. When it is removed its watches end
// as those whose time is over, and new requests get 404.
func TestRemovedResource(t *testing.T) {
	t.Parallel()
	var served *catalog.Catalog
	put := overCache(t)
	url, server := startServer(t, func(c *assemble.Config) { put(c); served = c.Catalog })
	row := &resources.Row{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "ConfigMap"},
		Resource: "things", StoragePath: "example.com/things", Namespaced: true,
		New: resources.Make[corev1.ConfigMap]}
	things := url + "/apis/example.com/v1/namespaces/ns/things"
	for range 2 { // what was removed can come again, with its objects
		if code, _, body := call(t, "GET", things, ""); code != 404 {
			t.Fatalf("before: %d %s", code, body)
		}
		entry, err := server.Entry(row, assemble.Behaviour{})
		if err != nil {
			t.Fatal(err)
		}
		if err := served.Add(entry); err != nil {
			t.Fatal(err)
		}
		if code, _, body := call(t, "PUT", things+"/missing", `{"metadata":{"name":"missing"}}`, "Content-Type",
			"application/json"); code != 404 || !strings.Contains(body, `things.example.com \"missing\" not found`) {
			t.Errorf("a PUT of what is not there: %d %s", code, body)
		}
		if code, _, body := call(t, "POST", things, `{"metadata":{"generateName":"a-"}}`, "Content-Type",
			"application/json"); code != 201 {
			t.Errorf("create: %d %s", code, body)
		}
		if code, _, body := call(t, "GET", url+"/apis/example.com/v1", ""); code != 200 ||
			!strings.Contains(body, "things") {
			t.Errorf("discovery: %d %.200s", code, body)
		}
		var ends []chan string
		for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf",
			"application/json;as=Table;g=meta.k8s.io;v=v1"} {
			ends = append(ends, watchToEnd(t, things+"?watch=1", accept))
		}
		if err := served.Remove(row.GroupResource()); err != nil {
			t.Fatal(err)
		}
		for _, end := range ends {
			select {
			case body := <-end:
				if strings.Contains(body, "ERROR") {
					t.Errorf("the watch ended with %q", body)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("a watch does not end")
			}
		}
		if code, _, _ := call(t, "GET", url+"/apis/example.com/v1", ""); code != 404 {
			t.Errorf("discovery after: %d", code)
		}
	}
}

// watchToEnd opens a watch, waits for its first event and then gives what came after that when it ends.
func watchToEnd(t *testing.T, url, accept string) chan string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	resp, err := plain("admin").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("watch: %d", resp.StatusCode)
	}
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		t.Fatalf("first event: %v", err)
	}
	end := make(chan string, 1)
	go func() {
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			b = append(b, "ERROR of the connection: "+err.Error()...)
		}
		end <- string(b)
	}()
	return end
}
