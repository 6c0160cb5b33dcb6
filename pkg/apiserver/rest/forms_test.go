package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/registry"
)

// widgets is the row of a custom resource.
func widgets() resources.Row {
	return resources.Row{
		GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, Resource: "widgets",
		Singular: "widget", Namespaced: true,
		StoragePath: "example.com/widgets", New: func() runtime.Object { return &unstructured.Unstructured{} },
	}
}

// kind is one kind whose forms are tried: one for each codec, and one that is a view.
type kind struct {
	path     string // of the namespace's objects
	protobuf bool
	doc      func(name string) string
}

func kinds() map[string]kind {
	return map[string]kind{
		"protobuf": {"/api/v1/namespaces/ns/configmaps", true, func(name string) string {
			return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"a":"b"}},"data":{"x":"<y>"}}`, name)
		}},
		"JSON": {"/apis/example.com/v1/namespaces/ns/widgets", false, func(name string) string {
			return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q,"labels":{"a":"b"}},"spec":{"big":9007199254740993,"half":0.5,"unknown":[{}]}}`, name)
		}},
		"view": {"/apis/events.k8s.io/v1/namespaces/ns/events", true, func(name string) string {
			return fmt.Sprintf(`{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":%q,"labels":{"a":"b"}},"eventTime":"2026-01-02T03:04:05.000000Z","reportingController":"x/y","reportingInstance":"i","action":"A","reason":"R","type":"Normal","regarding":{"namespace":"ns"}}`, name)
		}},
	}
}

func formsServed(t *testing.T) *served { return newServed(t, append(rows.All(), widgets())) }

// eachKind runs f for every kind, with three objects stored.
func eachKind(t *testing.T, f func(t *testing.T, s *served, k kind)) {
	t.Parallel()
	for name, k := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := formsServed(t)
			for _, n := range []string{"a", "b", "c"} {
				if code, _, body := s.do(t, http.MethodPost, k.path, asJSON, k.doc(n)); code != http.StatusCreated {
					t.Fatalf("create: %d %s", code, body)
				}
			}
			f(t, s, k)
		})
	}
}

// do makes one request.
func (s *served) do(t testing.TB, method, path, accept, body string, headers ...string) (int, http.Header, []byte) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Accept", accept)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Header(), w.Body.Bytes()
}

// get is do that wants a 200 and a media type.
func (s *served) get(t testing.TB, path, accept, media string) []byte {
	t.Helper()
	code, h, body := s.do(t, http.MethodGet, path, accept, "")
	if code != http.StatusOK || h.Get("Content-Type") != media {
		t.Fatalf("%s as %s: %d %s %s", path, accept, code, h.Get("Content-Type"), body)
	}
	return body
}

// read decodes a JSON document as anything, with the order of keys in its lists.
func read(t testing.TB, b []byte) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(b); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return u
}

// message decodes a protobuf document.
func message(t testing.TB, doc []byte, kind string, into registry.Message) {
	t.Helper()
	e, err := registry.ParseEnvelope(doc)
	if err == nil && string(e.Kind) != kind {
		err = fmt.Errorf("it is a %s", e.Kind)
	}
	if err == nil {
		err = into.Unmarshal(e.Raw)
	}
	if err != nil {
		t.Fatalf("%q: %v", doc, err)
	}
}

func metaForm(as, media string) string { return media + ";as=" + as + ";v=v1;g=meta.k8s.io" }

// TestListIsItsObjects: a list has exactly what gets of its objects answer, byte for byte except for what its elements
// leave out; YAML and indented JSON say the same.
func TestListIsItsObjects(t *testing.T) {
	eachKind(t, func(t *testing.T, s *served, k kind) {
		whole := s.get(t, k.path, asJSON, asJSON)
		list := read(t, whole)
		var want []byte
		for _, n := range []string{"a", "b", "c"} {
			one := bytes.TrimSuffix(s.get(t, k.path+"/"+n, asJSON, asJSON), []byte("\n"))
			if k.protobuf { // Go types
				one = slices.Replace(one, 1, 1+bytes.Index(one, []byte(`"metadata"`))-1)
			}
			want = append(append(want, ','), one...)
		}
		_, items, _ := bytes.Cut(whole, []byte(`"items":[`))
		if string(items) != string(want[1:])+"]}\n" || list.GetResourceVersion() == "" ||
			!strings.HasSuffix(list.GetKind(), "List") {
			t.Errorf("list\n%s\nobjects\n%s", whole, want)
		}
		if pretty := read(t, s.get(t, k.path+"?pretty=true", asJSON,
			asJSON)); !equality.Semantic.DeepEqual(pretty, list) {
			t.Errorf("indented: %v, want %v", pretty, list)
		}
		y, err := yaml.YAMLToJSON(s.get(t, k.path, "application/yaml", "application/yaml"))
		if err != nil || k.protobuf && !equality.Semantic.DeepEqual(read(t, y), list) {
			t.Errorf("as YAML: %s, %v", y, err)
		}
	})
}

// TestMetadataForms: the metadata of every kind, as JSON and protobuf, of both versions, alone, in lists and in
// watches.
func TestMetadataForms(t *testing.T) {
	eachKind(t, func(t *testing.T, s *served, k kind) {
		full := read(t, s.get(t, k.path+"/a", asJSON, asJSON))
		for _, version := range []string{"v1", "v1beta1"} {
			as := func(kind, media string) string {
				return strings.Replace(metaForm(kind, media), "v=v1", "v="+version, 1)
			}
			one := read(t, s.get(t, k.path+"/a", as("PartialObjectMetadata", asJSON), asJSON))
			if one.GetKind() != "PartialObjectMetadata" || one.GetAPIVersion() != "meta.k8s.io/"+version ||
				len(one.Object) != 3 ||
				!equality.Semantic.DeepEqual(one.Object["metadata"], full.Object["metadata"]) {
				t.Errorf("%v, want the metadata of %v", one, full)
			}
			var got metav1.PartialObjectMetadata
			message(t, s.get(t, k.path+"/a", as("PartialObjectMetadata", asProto), asProto), "PartialObjectMetadata",
				&got)
			if got.Name != "a" || got.UID != full.GetUID() || got.ResourceVersion != full.GetResourceVersion() ||
				got.Labels["a"] != "b" {
				t.Errorf("%+v", got)
			}
			list := read(t, s.get(t, k.path, as("PartialObjectMetadataList", asJSON), asJSON))
			items, _, _ := unstructured.NestedSlice(list.Object, "items")
			if len(items) != 3 || !equality.Semantic.DeepEqual(items[0], one.Object) ||
				list.GetKind() != "PartialObjectMetadataList" {
				t.Errorf("list %v", list)
			}
			var all metav1.PartialObjectMetadataList
			message(t, s.get(t, k.path, as("PartialObjectMetadataList", asProto), asProto), "PartialObjectMetadataList",
				&all)
			if len(all.Items) != 3 || !equality.Semantic.DeepEqual(all.Items[0].ObjectMeta, got.ObjectMeta) {
				t.Errorf("list %+v", all)
			}
			for _, frame := range s.watched(t, k.path, as("PartialObjectMetadata", asJSON), 3) {
				if o := read(t, frame.object); o.GetKind() != "PartialObjectMetadata" || len(o.Object) != 3 {
					t.Errorf("event %s", frame.object)
				}
			}
			message(t, s.watched(t, k.path, as("PartialObjectMetadata", asProto), 3)[0].object, "PartialObjectMetadata",
				&got)
			if got.UID != full.GetUID() {
				t.Errorf("event %+v", got)
			}
		}
	})
}

// TestTableForms: rows have the cells and the metadata, or as asked the whole object or nothing.
func TestTableForms(t *testing.T) {
	eachKind(t, func(t *testing.T, s *served, k kind) {
		full := read(t, s.get(t, k.path+"/a", asJSON, asJSON))
		for include, want := range map[string]any{"Metadata": full.Object["metadata"],
			"Object": full.Object["metadata"], "None": nil} {
			for _, frame := range append(s.watched(t, k.path+"?includeObject="+include, asTable, 1),
				frame{object: s.get(t, k.path+"?includeObject="+include, asTable, asJSON)}) {
				var table metav1.Table
				if err := json.Unmarshal(frame.object, &table); err != nil {
					t.Fatal(err)
				}
				row := table.Rows[0]
				if len(table.ColumnDefinitions) != len(row.Cells) || table.Kind != "Table" {
					t.Errorf("%s", frame.object)
				}
				if want == nil {
					if len(row.Object.Raw) != 0 {
						t.Errorf("%s", frame.object)
					}
					continue
				}
				o := read(t, row.Object.Raw)
				if !equality.Semantic.DeepEqual(o.Object["metadata"], want) ||
					include == "Object" && !equality.Semantic.DeepEqual(o, full) {
					t.Errorf("%s: %s", include, row.Object.Raw)
				}
			}
		}
	})
}

// frame is one event of a watch.
type frame struct {
	kind   string
	object []byte
}

// watched returns the first n events of a watch that begins with what there is.
func (s *served) watched(t testing.TB, path, accept string, n int) []frame {
	t.Helper()
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewServer(s)
	defer server.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path+sep+"watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("watch %s as %s: %s", path, accept, resp.Status)
	}
	defer cancel() // before the server is closed, which waits for the watch
	var out []frame
	in := bufio.NewReader(resp.Body)
	for range n {
		f, err := nextFrame(in, strings.Contains(resp.Header.Get("Content-Type"), "protobuf"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

func nextFrame(in *bufio.Reader, protobuf bool) (frame, error) {
	if !protobuf {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return frame{}, err
		}
		var e struct {
			Type   string
			Object json.RawMessage
		}
		err = json.Unmarshal(line, &e)
		return frame{e.Type, e.Object}, err
	}
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return frame{}, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(in, b); err != nil {
		return frame{}, err
	}
	var e metav1.WatchEvent
	err := e.Unmarshal(b)
	return frame{e.Type, e.Object.Raw}, err
}

// TestWatchFrames: an event's object is what a get answers.
func TestWatchFrames(t *testing.T) {
	eachKind(t, func(t *testing.T, s *served, k kind) {
		for i, f := range s.watched(t, k.path, asJSON, 3) {
			want := s.get(t, k.path+"/"+string(rune('a'+i)), asJSON, asJSON)
			if f.kind != "ADDED" || string(f.object)+"\n" != string(want) {
				t.Errorf("%s %s, want %s", f.kind, f.object, want)
			}
		}
		if !k.protobuf {
			return
		}
		for i, f := range s.watched(t, k.path, asProto, 3) {
			if want := s.get(t, k.path+"/"+string(rune('a'+i)), asProto, asProto); !bytes.Equal(f.object, want) {
				t.Errorf("%q, want %q", f.object, want)
			}
		}
	})
}

// TestMediaTypesOfCustomResources: JSON and YAML are what whole objects are sent and taken in. A client that would
// rather have protobuf gets what it accepts next, or a 406; a body in protobuf is a 415, and so is a strategic merge
// patch.
func TestMediaTypesOfCustomResources(t *testing.T) {
	t.Parallel()
	s, k := formsServed(t), kinds()["JSON"]
	if code, _, body := s.do(t, http.MethodPost, k.path, asProto+",application/json",
		k.doc("a")); code != http.StatusCreated {
		t.Fatalf("%d %s", code, body)
	}
	const every = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
	for _, path := range []string{k.path, k.path + "/a"} {
		for accept, want := range map[string]string{
			asProto + ", application/json":             asJSON,
			asProto + ",*/*":                           asJSON,
			"application/cbor, application/yaml;q=0.5": "application/yaml",
			"application/json;q=0.1,application/yaml":  "application/yaml",
			"application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1, application/json": asJSON,
		} {
			s.get(t, path, accept, want)
		}
		for accept, want := range map[string]string{
			asProto:                       every,
			asProto + ",application/cbor": every,
			"text/html":                   every,
		} {
			code, _, body := s.do(t, http.MethodGet, path, accept, "")
			var status metav1.Status
			if err := readStatus(body, &status); err != nil || code != http.StatusNotAcceptable ||
				status.Message != want {
				t.Errorf("%s as %s: %d %s, %v", path, accept, code, status.Message, err)
			}
		}
	}
	if frames := s.watched(t, k.path, asProto+";stream=watch,application/json;stream=watch",
		1); read(t, frames[0].object).GetName() != "a" {
		t.Errorf("event %s", frames[0].object)
	}
	for _, c := range []struct{ method, path, media, want string }{
		{http.MethodPost, k.path, asProto, "application/json, application/yaml"},
		{http.MethodPut, k.path + "/a", asProto, "application/json, application/yaml"},
		{http.MethodPost, k.path, "application/cbor",
			"application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{http.MethodPatch, k.path + "/a", "application/strategic-merge-patch+json",
			"application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"},
	} {
		code, _, body := s.do(t, c.method, c.path, asJSON, k.doc("a"), "Content-Type", c.media)
		if want := "the body of the request was in an unknown format - accepted media types include: " +
			c.want; code != http.StatusUnsupportedMediaType || read(t, body).Object["message"] != want {
			t.Errorf("%s of %s: %d %s", c.method, c.media, code, body)
		}
	}
}

// readStatus reads a Status in whichever format it is sent.
func readStatus(b []byte, into *metav1.Status) error {
	if e, err := registry.ParseEnvelope(b); err == nil {
		return into.Unmarshal(e.Raw)
	}
	return json.Unmarshal(b, into)
}

// TestCustomResourceWrites: an unstructured object goes through create, update, patch and delete, and keeps its numbers
// and what nobody knows.
func TestCustomResourceWrites(t *testing.T) {
	t.Parallel()
	s, k := formsServed(t), kinds()["JSON"]
	for _, step := range []struct{ method, path, media, body string }{
		{http.MethodPost, k.path, asJSON, k.doc("a")},
		{http.MethodPut, k.path + "/a", "application/yaml",
			"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {big: 9007199254740993, half: 0.5, unknown: [{}], put: true}\n"},
		{http.MethodPatch, k.path + "/a", "application/merge-patch+json", `{"spec":{"patched":9007199254740995}}`},
		{http.MethodPatch, k.path + "/a", "application/json-patch+json",
			`[{"op":"add","path":"/spec/last","value":1.5}]`},
	} {
		code, _, body := s.do(t, step.method, step.path, asJSON, step.body, "Content-Type", step.media)
		if code != http.StatusOK && code != http.StatusCreated {
			t.Fatalf("%s: %d %s", step.method, code, body)
		}
		spec, _, _ := unstructured.NestedMap(read(t, body).Object, "spec")
		if spec["big"] != int64(9007199254740993) || spec["half"] != 0.5 || fmt.Sprint(spec["unknown"]) != "[map[]]" {
			t.Errorf("after %s: %s", step.method, body)
		}
		if again := s.get(t, k.path+"/a", asJSON, asJSON); !bytes.Equal(again, body) {
			t.Errorf("answered %s, then %s", body, again)
		}
	}
	code, h, _ := s.do(t, http.MethodPost, k.path, asJSON,
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"b"},"spec":{"x":1,"x":2}}`)
	if code != http.StatusCreated || h.Get("Warning") != `299 - "duplicate field \"spec.x\""` {
		t.Errorf("a duplicate field: %d, %v", code, h)
	}
	if code, _, body := s.do(t, http.MethodDelete, k.path+"/a", asJSON, ""); code != http.StatusOK ||
		read(t, body).GetKind() != "Status" {
		t.Errorf("delete: %d %s", code, body)
	}
}

// TestCustomResourcesNameTheirKind has the words of Kubernetes' refusals.
func TestCustomResourcesNameTheirKind(t *testing.T) {
	t.Parallel()
	s, k := formsServed(t), kinds()["JSON"]
	for _, c := range []struct {
		body, want string
		code       int
	}{
		{`{"metadata":{"name":"b"}}`,
			`the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '{"metadata":{"name":"b"}}' ({"metadata":{"name":"b"}})`, 400},
		{`{"kind":"Widget","metadata":{"name":"c"}}`,
			"the API version in the data () does not match the expected API version (example.com/v1)", 400},
		{`{"kind":"Gadget","apiVersion":"other.com/v2","metadata":{"name":"c"}}`,
			"the API version in the data (other.com/v2) does not match the expected API version (example.com/v1)", 400},
		{`{"kind":"Widget","apiVersion":"a/b/c","metadata":{"name":"c"}}`,
			`the object provided is unrecognized (must be of type Widget): unexpected GroupVersion string: a/b/c ({"kind":"Widget","apiVersion": ...)`, 400},
		{`{"kind":"Gadget","apiVersion":"example.com/v1","metadata":{"name":"c"}}`,
			`Gadget.example.com "c" is invalid: kind: Invalid value: "Gadget": must be Widget`, 422},
	} {
		if code, _, b := s.do(t, http.MethodPost, k.path, asJSON, c.body); code != c.code ||
			read(t, b).Object["message"] != c.want {
			t.Errorf("%s:\n got %d %s\nwant %d %s", c.body, code, b, c.code, c.want)
		}
	}
}
