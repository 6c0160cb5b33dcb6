package apiserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/registry"
)

// notes are a resource in two versions: v1, which is stored, is a ConfigMap, and v1beta1 is a Secret that keeps its
// text in stringData and has a type, which the hub has as data.type.
func notes() *resources.Row {
	toHub := func(in *corev1.Secret) *corev1.ConfigMap {
		out := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Note"},
			ObjectMeta: in.ObjectMeta, Data: in.StringData}
		if in.Type != "" {
			if out.Data == nil {
				out.Data = map[string]string{}
			}
			out.Data["type"] = string(in.Type)
		}
		return out
	}
	fromHub := func(in *corev1.ConfigMap) *corev1.Secret {
		out := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1beta1", Kind: "Note"},
			ObjectMeta: in.ObjectMeta, Type: corev1.SecretType(in.Data["type"])}
		for k, v := range in.Data {
			if k != "type" {
				if out.StringData == nil {
					out.StringData = map[string]string{}
				}
				out.StringData[k] = v
			}
		}
		return out
	}
	return &resources.Row{
		GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Note"}, Resource: "notes",
		Singular: "note", StoragePath: "example.com/notes", Namespaced: true,
		New: resources.Make[corev1.ConfigMap],
		Versions: []resources.Version{{Name: "v1"}, {
			Name: "v1beta1", New: resources.Make[corev1.Secret], ToHub: resources.Convert(toHub),
			FromHub: resources.Convert(fromHub),
			Default: resources.Decoded(func(s *corev1.Secret) {
				if s.Type == "" {
					s.Type = "plain"
				}
			}),
			Deprecated: "example.com/v1beta1 Note is deprecated", FieldNames: map[string]string{"type": "data.type"},
		}},
		Strategy:   resources.Typed[*corev1.ConfigMap]{}.Strategy(),
		FieldNames: []string{"data.type"},
		Fields: resources.Fields(func(c *corev1.ConfigMap) fields.Set {
			return fields.Set{"data.type": c.Data["type"]}
		}),
	}
}

// A resource is written and read in each of its versions, whichever the other side speaks: the stored version is the
// hub.
func TestVersions(t *testing.T) {
	t.Parallel()
	row := notes()
	url := start(t, func(c *assemble.Config) {
		overCache(t)(c)
		c.Rows = append(c.Rows, *row)
	})
	hub, beta := url+"/apis/example.com/v1/namespaces/ns/notes", url+"/apis/example.com/v1beta1/namespaces/ns/notes"
	ask := func(method, url, body, media string, code int, want ...string) string {
		t.Helper()
		got, _, answer := call(t, method, url, body, "Content-Type", media)
		if got != code {
			t.Fatalf("%s %s: %d %s", method, url, got, answer)
		}
		for _, w := range want {
			if !strings.Contains(answer, w) {
				t.Errorf("%s %s: %s is not in %s", method, url, w, answer)
			}
		}
		return answer
	}
	const js = "application/json"
	hubWatch, betaWatch := watching(t, hub), watching(t, beta)
	meta := watching(t, beta, "Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")

	// Created in one version, with the defaults of that, and read in both.
	ask("POST", beta, `{"apiVersion":"example.com/v1beta1","kind":"Note","metadata":{"name":"b"},"stringData":{"a":"1"}}`, js, 201, `"apiVersion":"example.com/v1beta1"`, `"type":"plain"`, `"stringData":{"a":"1"}`)
	ask("POST", hub, `{"apiVersion":"example.com/v1","kind":"Note","metadata":{"name":"h"},"data":{"b":"2"}}`, js, 201,
		`"data":{"b":"2"}}`)
	ask("GET", hub+"/b", "", "", 200, `"kind":"Note","apiVersion":"example.com/v1"`, `"data":{"a":"1","type":"plain"}`)
	ask("GET", beta+"/h", "", "", 200, `"apiVersion":"example.com/v1beta1"`, `"stringData":{"b":"2"}`)
	ask("POST", beta, `{"apiVersion":"example.com/v1","kind":"Note","metadata":{"name":"x"}}`, js, 400,
		`Note in version \"v1\" cannot be handled as a Note`)

	// Lists, selectors, tables and metadata speak the client's version.
	ask("GET", beta, "", "", 200, `"kind":"NoteList","apiVersion":"example.com/v1beta1"`, `"type":"plain"`,
		`"stringData":{"b":"2"}`)
	if list := ask("GET", beta+"?fieldSelector=type%3Dplain", "", "", 200,
		`"name":"b"`); strings.Contains(list, `"name":"h"`) {
		t.Errorf("selected are %s", list)
	}
	ask("GET", beta+"?fieldSelector=data.type%3Dplain", "", "", 400, "field label not supported: data.type")
	ask("GET", hub+"?fieldSelector=data.type%3Dplain", "", "", 200, `"name":"b"`)
	if _, _, table := call(t, "GET", beta+"?includeObject=Object", "", "Accept",
		"application/json;as=Table;g=meta.k8s.io;v=v1"); strings.Count(table, `"apiVersion":"example.com/v1beta1"`) !=
		2 {
		t.Errorf("the table has %s", table)
	}
	if _, h, _ := call(t, "GET", beta, ""); !strings.Contains(h.Get("Warning"), "v1beta1 Note is deprecated") {
		t.Errorf("no warning: %v", h)
	}

	// Updated and patched in the other version than before.
	ask("PUT", hub+"/b", `{"metadata":{"name":"b"},"data":{"a":"2","type":"fancy"}}`, js, 200,
		`"data":{"a":"2","type":"fancy"}`)
	ask("PATCH", beta+"/b", `{"stringData":{"a":null,"c":"3"}}`, "application/merge-patch+json", 200,
		`"stringData":{"c":"3"}`, `"type":"fancy"`)
	ask("PATCH", hub+"/b", `[{"op":"test","path":"/data/type","value":"fancy"}]`, "application/json-patch+json", 200,
		`"data":{"c":"3","type":"fancy"}`)
	ask("DELETE", beta+"/b", "", "", 200, `"kind":"notes"`)
	ask("GET", hub+"/b", "", "", 404, `notes.example.com \"b\" not found`)

	want := [][2]string{{"ADDED", "b"}, {"ADDED", "h"}, {"MODIFIED", "b"}, {"MODIFIED", "b"}, {"DELETED", "b"}}
	for _, w := range want {
		for version, next := range map[string]func() event{"example.com/v1": hubWatch, "example.com/v1beta1": betaWatch,
			"meta.k8s.io/v1": meta} {
			if e := next(); e.Type != w[0] || e.Object.Name != w[1] || e.Object.APIVersion != version ||
				version == "example.com/v1beta1" && e.Object.Data != nil {
				t.Fatalf("%s: %+v, want %v", version, e, w)
			}
		}
	}

	// Both are in discovery, with one mark of what is stored.
	var hashes []string
	for _, v := range []string{"v1", "v1beta1"} {
		var list metav1.APIResourceList
		if err := json.Unmarshal([]byte(ask("GET", url+"/apis/example.com/"+v, "", "", 200)), &list); err != nil ||
			len(list.APIResources) != 1 {
			t.Fatalf("%s: %v, %v", v, list, err)
		}
		hashes = append(hashes, list.APIResources[0].StorageVersionHash)
	}
	if hashes[0] == "" || hashes[0] != hashes[1] {
		t.Errorf("they say they are stored as %v", hashes)
	}
	ask("GET", url+"/apis/example.com", "", "", 200,
		`"versions":[{"groupVersion":"example.com/v1","version":"v1"},{"groupVersion":"example.com/v1beta1"`)
	ask("GET", url+"/apis/example.com/v2/namespaces/ns/notes", "", "", 404)
}

// What only a version's own objects have can be selected by in that version; a conversion that fails there is told and
// hides nothing.
func TestFieldsOfAVersion(t *testing.T) {
	t.Parallel()
	row := notes()
	beta := &row.Versions[1]
	beta.FieldNames = map[string]string{"size": "size"}
	beta.Fields = resources.Fields(func(s *corev1.Secret) fields.Set {
		return fields.Set{"size": strconv.Itoa(len(s.StringData))}
	})
	convert := beta.FromHub
	beta.FromHub = func(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
		if obj.(*corev1.ConfigMap).Data["broken"] != "" {
			return nil, errors.New("no such note")
		}
		return convert(ctx, obj)
	}
	url := start(t, func(c *assemble.Config) {
		overCache(t)(c)
		c.Rows = append(c.Rows, *row)
	})
	hubs, betas := url+"/apis/example.com/v1/namespaces/ns/notes", url+"/apis/example.com/v1beta1/namespaces/ns/notes"
	write := func(method, url, body string, code int) {
		t.Helper()
		if got, _, answer := call(t, method, url, body, "Content-Type",
			map[string]string{"POST": "application/json", "PATCH": "application/merge-patch+json"}[method]); got !=
			code {
			t.Fatalf("%s %s: %d %s", method, url, got, answer)
		}
	}
	next := watching(t, betas+"?fieldSelector=size%3D1")
	write("POST", hubs, `{"metadata":{"name":"one"},"data":{"a":"1"}}`, 201)
	write("POST", hubs, `{"metadata":{"name":"two"},"data":{"a":"1","b":"2"}}`, 201)
	if code, _, list := call(t, "GET", betas+"?fieldSelector=size%3D1", ""); code != 200 ||
		!strings.Contains(list, `"name":"one"`) || strings.Contains(list, `"name":"two"`) {
		t.Errorf("selected are %d %s", code, list)
	}
	write("PATCH", hubs+"/one", `{"data":{"b":"2"}}`, 200)
	write("PATCH", hubs+"/two", `{"data":{"b":null}}`, 200)
	for _, want := range [][2]string{{"ADDED", "one"}, {"DELETED", "one"}, {"ADDED", "two"}} {
		if e := next(); e.Type != want[0] || e.Object.Name != want[1] {
			t.Fatalf("%+v, want %v", e, want)
		}
	}
	write("POST", hubs, `{"metadata":{"name":"three"},"data":{"broken":"yes"}}`, 201)
	if code, _, list := call(t, "GET", betas+"?fieldSelector=size%3D1", ""); code != 500 ||
		!strings.Contains(list, "no such note") {
		t.Errorf("with one that cannot be converted: %d %s", code, list)
	}
	if e := next(); e.Type != "ERROR" {
		t.Errorf("the watch goes on with %+v", e)
	}
	if code, _, list := call(t, "GET", betas+"?fieldSelector=metadata.name%3Done", ""); code != 200 ||
		!strings.Contains(list, `"name":"one"`) {
		t.Errorf("by name: %d %s", code, list)
	}
}

// The same in protobuf: what is stored is the hub's message, and clients of the other version get theirs.
func TestVersionsInProtobuf(t *testing.T) {
	t.Parallel()
	row := notes()
	url := start(t, func(c *assemble.Config) { c.Rows = append(c.Rows, *row) })
	beta := registry.NewProtobufCodec(schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Note"},
		row.Versions[1].New, nil)
	const proto = "application/vnd.kubernetes.protobuf"
	notes := url + "/apis/example.com/v1beta1/namespaces/ns/notes"
	if code, _, body := call(t, "POST", notes, `{"metadata":{"name":"b"},"stringData":{"a":"1"}}`, "Content-Type",
		"application/json"); code != 201 {
		t.Fatalf("%d %s", code, body)
	}
	_, _, body := call(t, "GET", notes+"/b", "", "Accept", proto)
	obj, err := beta.Decode([]byte(body), 0)
	if s, ok := obj.(*corev1.Secret); err != nil || !ok || s.StringData["a"] != "1" || s.ResourceVersion == "" {
		t.Fatalf("%v, %v", obj, err)
	}
	if code, _, body := call(t, "PUT", notes+"/b", body, "Content-Type", proto); code != 200 {
		t.Errorf("what was read is not taken back: %d %s", code, body)
	}
	if _, _, body := call(t, "GET", notes, "", "Accept",
		proto); !strings.Contains(body, "example.com/v1beta1\x12\bNoteList") {
		t.Errorf("the list is %q", body)
	}
}

// event is one of a watch, as far as the tests look.
type event struct {
	Type   string
	Object struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Data              map[string]string `json:"data"`
	}
}

// watching watches url and gives one event after the other.
func watching(t *testing.T, url string, headers ...string) func() event {
	t.Helper()
	if !strings.Contains(url, "?") {
		url += "?"
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"&watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := plain("admin").Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("watch %s: %v, %v", url, resp, err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	return func() event {
		t.Helper()
		var e event
		if !lines.Scan() {
			t.Fatalf("the watch of %s ended: %v", url, lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
}
