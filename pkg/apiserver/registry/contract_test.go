package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/storage"
)

// widgetKind is the kind of a custom resource.
var widgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func newWidget() runtime.Object { return &unstructured.Unstructured{} }

func widgetCodec() *JSONCodec {
	return NewJSONCodec(widgetKind, newWidget, func(obj runtime.Object) fields.Set {
		color, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "spec", "color")
		return fields.Set{"spec.color": color}
	}, nil)
}

const widgetHead = `{"apiVersion":"example.com/v1","kind":"Widget",`

// contract is a codec and what its suite needs of it.
type contract struct {
	Codec
	docs   []string // of objects with metadata.name p and label a=b, or without metadata
	broken []string // stored bytes that are none
	field  [2]string
	huge   func(size int) string
}

func contracts() map[string]contract {
	const metadata = `"metadata":{"annotations":{"é":"<&>\\\""},"creationTimestamp":"2026-01-02T03:04:05Z","finalizers":["x/y"],"generation":3,"labels":{"a":"b"},` +
		`"managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:resourceVersion":{}}},"manager":"m","operation":"Update","time":"2026-01-02T03:04:05Z"}],` +
		`"name":"p","namespace":"ns","ownerReferences":[{"apiVersion":"v1","kind":"K","name":"resourceVersion","uid":"u"}],"uid":"5"}`
	head := podCodec().head
	pod, err := podCodec().Draft(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
	if err != nil {
		panic(err)
	}
	return map[string]contract{
		"protobuf": {
			Codec: podCodec(),
			docs: []string{somePod, `{"kind":"Pod","apiVersion":"v1",` + metadata +
				`,"spec":{"nodeName":"n","containers":null}}`,
				`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","labels":{"a":"b"}},"spec":{"nodeName":"n","containers":[],"volumes":[{"name":"v","projected":{"sources":[]}}]}}`},
			broken: []string{"", "k8s", envelopeMagic, widgetHead + `"metadata":{"name":"p"}}`, string(head),
				string(head) + "\xff", string(head) + "\x7fx",
				string(pod.Value[:len(pod.Value)-8]), strings.Replace(string(pod.Value), "Pod", "Dop", 1)},
			field: [2]string{"spec.nodeName", "n"},
			huge: func(size int) string {
				return `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","labels":{"a":"b"},"annotations":{"big":"` + strings.Repeat("x", size) + `"}},"spec":{"nodeName":"n","containers":null}}`
			},
		},
		"JSON": {
			Codec: widgetCodec(),
			docs: []string{
				widgetHead + `"metadata":{"labels":{"a":"b"},"name":"p"},"spec":{"color":"n"}}`,
				widgetHead + metadata + `,"spec":{"color":"n","deep":[{"metadata":{"resourceVersion":"9"}}],"nothing":null,"unknown":{}},"status":{}}`,
				widgetHead + `"metadata":{"labels":{"a":"b"},"name":"p","zzz":1},"spec":{"color":"n"}}`,
				`{"aa":1,"apiVersion":"example.com/v1","kind":"Widget","metadata":{"labels":{"a":"b"},"name":"p","uid":"1"},"spec":{"color":"n"}}`,
			},
			broken: []string{"", "{", "null", "[]", `"x"`, string(pod.Value), widgetHead,
				widgetHead + `"metadata":{"name":"p"}`, widgetHead + `"metadata":{"name":"p"},"a":[}`,
				widgetHead + `"metadata":null}`, widgetHead + `"spec":{}}`,
				`{"apiVersion":"other.com/v1","kind":"Widget","metadata":{"name":"p"}}`,
				`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"p"}}`, `{"metadata":{"name":"p"}}`},
			field: [2]string{"spec.color", "n"},
			huge: func(size int) string {
				return widgetHead + `"metadata":{"labels":{"a":"b"},"name":"p","uid":"1"},"spec":{"big":"` +
					strings.Repeat("x", size) + `","color":"n"}}`
			},
		},
	}
}

// each runs f on every codec.
func each(t *testing.T, f func(t *testing.T, c contract)) {
	t.Parallel()
	for name, c := range contracts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, c)
		})
	}
}

// object reads a document as a client would have sent it.
func (c contract) object(t testing.TB, doc string) runtime.Object {
	t.Helper()
	obj := c.New()
	if err := json.Unmarshal([]byte(doc), obj); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return obj
}

// stored returns the item that doc becomes.
func (c contract) stored(t testing.TB, doc string, revision int64) *storage.Item {
	t.Helper()
	d, err := c.Draft(c.object(t, doc))
	if err != nil {
		t.Fatal(err)
	}
	return storage.NewItem("/registry/things/ns/p", d.Value, revision, *d.Facts)
}

// asWritten is the JSON that clients get of obj: what the encoder of its type writes.
func asWritten(t testing.TB, obj runtime.Object) string {
	t.Helper()
	b, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(b), "\n")
}

func withVersion(t testing.TB, obj runtime.Object, version string) runtime.Object {
	t.Helper()
	obj = obj.DeepCopyObject()
	access, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	access.SetResourceVersion(version)
	return obj
}

// TestContractRoundTrip: what is read is what was written except for the resourceVersion, which is the revision's; the
// bytes do not depend on it, and the object keeps its own.
func TestContractRoundTrip(t *testing.T) {
	each(t, func(t *testing.T, c contract) {
		for _, doc := range c.docs {
			obj := withVersion(t, c.object(t, doc), "41")
			d, err := c.Draft(obj)
			if err != nil {
				t.Fatal(err)
			}
			if access, _ := meta.Accessor(obj); access.GetResourceVersion() != "41" {
				t.Errorf("%s: the version that the object had was taken away", doc)
			}
			other, err := c.Draft(withVersion(t, obj, ""))
			if err != nil || !bytes.Equal(other.Value, d.Value) {
				t.Errorf("%s: the bytes depend on the version: %q and %q, %v", doc, d.Value, other.Value, err)
			}
			for revision, want := range map[int64]string{0: "", 7: "7", math.MaxInt64: "9223372036854775807"} {
				got, err := c.Decode(d.Value, revision)
				if want := withVersion(t, obj, want); err != nil || !equality.Semantic.DeepEqual(got, want) ||
					asWritten(t, got) != asWritten(t, want) {
					t.Errorf("%s at %d: %+v, %v", doc, revision, got, err)
				}
			}
			again, err := c.Draft(withVersion(t, c.object(t, doc), "7"))
			if err != nil || !bytes.Equal(again.Value, d.Value) {
				t.Errorf("%s: equal objects, other bytes: %v", doc, err)
			}
		}
	})
}

// TestContractEncodings: what is made of the bytes is what an encoder makes of the object: the JSON document, the
// element of a list, and for a kind with messages the document and the element in protobuf.
func TestContractEncodings(t *testing.T) {
	each(t, func(t *testing.T, c contract) {
		for i, doc := range append(slices.Clone(c.docs), c.huge(1<<20)) {
			for _, revision := range []int64{7, 0, 1234567890} {
				if revision != 7 && i == len(c.docs) {
					continue // the huge one once
				}
				item := c.stored(t, doc, revision)
				before := bytes.Clone(item.Value())
				obj, err := Object(c, item)
				if err != nil {
					t.Fatal(err)
				}
				want := asWritten(t, obj)
				if got, err := c.AppendJSON(nil, item); err != nil || string(got) != want {
					t.Errorf("JSON at %d is\n%.300s\nwant\n%.300s\n%v", revision, got, want, err)
				}
				element := want
				if c.Messages() != nil { // Go types
					element = strings.Replace(want, `"kind":"Pod","apiVersion":"v1",`, "", 1)
				}
				size, sizeErr := c.ElementSize(item)
				got, err := c.AppendElement([]byte("x"), item)
				if err != nil || sizeErr != nil || string(got) != "x"+element || size != len(element) {
					t.Errorf("element at %d of %d bytes is\n%.300s\nwant %d\n%.300s\n%v %v", revision, size, got,
						len(element), element, err, sizeErr)
				}
				if c.Messages() != nil {
					c.checkMessages(t, item, obj)
				}
				if !bytes.Equal(item.Value(), before) {
					t.Fatal("the stored bytes were changed")
				}
			}
		}
	})
}

func (c contract) checkMessages(t *testing.T, item *storage.Item, want runtime.Object) {
	t.Helper()
	m := c.Messages()
	doc, err := AppendDocument(m, []byte("x"), item)
	if size, sizeErr := DocumentSize(m, item); err != nil || sizeErr != nil || size != len(doc)-1 {
		t.Fatalf("a document of %d bytes, announced as %d: %v, %v", len(doc)-1, size, err, sizeErr)
	}
	e, err := ParseEnvelope(doc[1:])
	if err != nil || string(e.Kind) != c.GVK().Kind || string(e.APIVersion) != c.GVK().GroupVersion().String() {
		t.Fatalf("the envelope is %+v, %v", e, err)
	}
	message, err := m.AppendMessage(nil, item)
	if err != nil || !bytes.Equal(message, e.Raw) {
		t.Fatalf("the message of a list is not that of the document: %v", err)
	}
	got := c.New()
	if err := got.(Message).Unmarshal(message); err != nil || !equality.Semantic.DeepEqual(got, want) {
		t.Fatalf("the message says %+v, %v", got, err)
	}
}

// TestContractMediaTypes: JSON is what clients without a wish get, and protobuf is offered exactly where it can be
// made.
func TestContractMediaTypes(t *testing.T) {
	each(t, func(t *testing.T, c contract) {
		types := c.MediaTypes()
		if types[0] != runtime.ContentTypeJSON ||
			slices.Contains(types, runtime.ContentTypeProtobuf) != (c.Messages() != nil) {
			t.Errorf("media types %v", types)
		}
	})
}

// TestContractMetadata: an item's metadata, decoded or as an item of PartialObjectMetadata, is that of the object.
func TestContractMetadata(t *testing.T) {
	each(t, func(t *testing.T, c contract) {
		for _, doc := range append(slices.Clone(c.docs), c.huge(1<<16)) {
			item := c.stored(t, doc, 7)
			var named struct{ Metadata metav1.ObjectMeta }
			if err := json.Unmarshal([]byte(doc), &named); err != nil {
				t.Fatal(err)
			}
			want := named.Metadata
			want.ResourceVersion = "7"
			m, err := c.Metadata(item)
			if err != nil || !equality.Semantic.DeepEqual(*m, want) {
				t.Errorf("%.300s: metadata %+v, %v", doc, m, err)
			}
			for _, version := range []string{"v1", "v1beta1"} {
				partial := NewMetadataCodec(version)
				shown, err := partial.Item(c, item)
				if err != nil {
					t.Fatal(err)
				}
				obj := partial.New().(*metav1.PartialObjectMetadata)
				obj.ObjectMeta = want
				if got, err := partial.AppendJSON(nil, shown); err != nil || string(got) != asWritten(t, obj) {
					t.Errorf("%s, %v", got, err)
				}
				if element, err := partial.AppendElement(nil, shown); err != nil ||
					string(element) != asWritten(t, obj) {
					t.Errorf("element %s, %v", element, err)
				}
				contract{Codec: partial}.checkMessages(t, shown, obj)
			}
		}
	})
}

// TestContractFacts: the writer's facts are those that are read from the bytes.
func TestContractFacts(t *testing.T) {
	each(t, func(t *testing.T, c contract) {
		for _, doc := range c.docs {
			item := c.stored(t, doc, 7)
			facts, err := c.FactsOf(item.Value())
			if err != nil || !reflect.DeepEqual(facts, item.Facts) {
				t.Errorf("%s: read as %+v, written as %+v, %v", doc, facts, item.Facts, err)
			}
			if facts.Labels().Get("a") != "b" || facts.Fields().Get("metadata.name") != "p" ||
				facts.Fields().Get(c.field[0]) != c.field[1] {
				t.Errorf("%s: %+v", doc, facts)
			}
		}
	})
}

// TestContractBroken: bytes that nobody could have stored give an error wherever they are asked for something, before a
// list's first byte too.
func TestContractBroken(t *testing.T) {
	each(t, func(t *testing.T, c contract) {
		partial := NewMetadataCodec("v1")
		for _, value := range c.broken {
			item := storage.NewItem("/registry/things/ns/p", []byte(value), 7, storage.Facts{})
			if _, err := Object(c, item); err == nil || !strings.Contains(err.Error(), item.Key) {
				t.Errorf("%q: object: %v", value, err)
			}
			if _, err := c.FactsOf(item.Value()); err == nil {
				t.Errorf("%q: facts", value)
			}
			if _, err := c.AppendJSON(nil, item); err == nil {
				t.Errorf("%q: JSON", value)
			}
			if _, err := c.ElementSize(item); err == nil {
				t.Errorf("%q: size of an element", value)
			}
			if b, err := c.AppendElement([]byte("x"), item); err == nil || string(b) != "x" {
				t.Errorf("%q: element: %q, %v", value, b, err)
			}
			// Metadata does not look at the rest, so only where it is missing too:
			if m, err := c.Metadata(item); err == nil && m.Name != "p" {
				t.Errorf("%q: metadata %+v", value, m)
			}
			_, _ = partial.Item(c, item) // must not panic
			if m := c.Messages(); m != nil {
				_, _ = m.MessageSize(item)
				if b, err := AppendDocument(m, []byte("x"), item); err != nil && string(b) != "x" {
					t.Errorf("%q: document: %q, %v", value, b, err)
				}
			}
		}
	})
}

// TestJSONIsStoredAsByKubernetes: sorted keys, one line, no resourceVersion; unknown fields and all digits kept.
func TestJSONIsStoredAsByKubernetes(t *testing.T) {
	t.Parallel()
	c := contract{Codec: widgetCodec()}
	item := c.stored(t, `{"kind":"Widget","spec":{"max":9223372036854775807,"min":-9223372036854775808,"beyond":9223372036854775808,"half":0.5,"tenth":0.1,"small":1e-7,"zero":0,
		"text":"<é>","unknown":{"b":[],"a":null}},"apiVersion":"example.com/v1","metadata":{"uid":"u","resourceVersion":"3","name":"p"}}`, 7)
	const want = widgetHead +
		`"metadata":{"name":"p",%s"uid":"u"},"spec":{"beyond":9223372036854776000,"half":0.5,"max":9223372036854775807,"min":-9223372036854775808,` +
		`"small":1e-7,"tenth":0.1,"text":"\u003cé\u003e","unknown":{"a":null,"b":[]},"zero":0}}`
	if string(item.Value()) != fmt.Sprintf(want, "")+"\n" {
		t.Errorf("stored %s", item.Value())
	}
	if b, err := c.AppendJSON(nil, item); err != nil || string(b) != fmt.Sprintf(want, `"resourceVersion":"7",`) {
		t.Errorf("sent %s, %v", b, err)
	}
	obj, err := Object(c, item)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{"max": int64(math.MaxInt64), "min": int64(math.MinInt64),
		"beyond": 9223372036854775808.0, "half": 0.5, "tenth": 0.1, "small": 1e-7, "zero": int64(0)} {
		if got, _, _ := unstructured.NestedFieldNoCopy(obj.(*unstructured.Unstructured).Object, "spec",
			name); got != want {
			t.Errorf("%s is %T %v", name, got, got)
		}
	}
}

// TestJSONOfOthers: what others have stored is served, spliced or not: in another version, with spaces, with a version
// among the bytes, with keys in another order, without a newline.
func TestJSONOfOthers(t *testing.T) {
	t.Parallel()
	c := widgetCodec()
	for _, value := range []string{
		strings.Replace(widgetHead, "v1", "v1alpha1", 1) + `"metadata":{"name":"p"}}` + "\n",
		widgetHead + `"metadata":{"name":"p"}}`,
		widgetHead + ` "metadata" : { "name" : "p" , "uid" : "1" } , "spec" : { } }` + "\n",
		widgetHead + `"metadata":{"uid":"1","resourceVersion":"3","name":"p"}}` + "\n",
		widgetHead + `"metadata":{"uid":"1","resource\u0056ersion":"3","name":"p"}}` + "\n",
		widgetHead + `"metad\u0061ta":{"uid":"1","name":"p"}}` + "\n",
		widgetHead + `"metadata":{"name":"q"},"metadata":{"name":"p"}}` + "\n",
		`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"p"}}` + "\n",
	} {
		facts, err := c.FactsOf([]byte(value))
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		item := storage.NewItem("", []byte(value), 7, facts)
		checkSplice(t, c, item)
		if facts.Fields().Get("metadata.name") != "p" {
			t.Errorf("%s: %+v", value, facts)
		}
	}
}

// checkSplice compares the JSON of an item with its decoded object.
func checkSplice(t *testing.T, c *JSONCodec, item *storage.Item) {
	t.Helper()
	obj, err := Object(c, item)
	if err != nil {
		t.Fatalf("%q: %v", item.Value(), err)
	}
	b, err := c.AppendJSON(nil, item)
	got := &unstructured.Unstructured{}
	if err == nil {
		err = got.UnmarshalJSON(b)
	}
	if err != nil || !equality.Semantic.DeepEqual(runtime.Object(got), obj) {
		t.Errorf("%q at %d is sent as %q, %v", item.Value(), item.Revision, b, err)
	}
	if n := bytes.Count(b, []byte(`"resourceVersion":"`+fmt.Sprint(item.Revision)+`"`)); n < 1 && item.Revision != 0 {
		t.Errorf("%q is sent without its version: %q", item.Value(), b)
	}
	if size, err := c.ElementSize(item); err != nil || size != len(b) {
		t.Errorf("%q: %d bytes announced, %d sent, %v", item.Value(), size, len(b), err)
	}
}

// TestJSONCompletes: an object that lacks what its schema has got since is completed when it is read, and sent so.
func TestJSONCompletes(t *testing.T) {
	t.Parallel()
	c := NewJSONCodec(widgetKind, newWidget, nil, func(obj runtime.Object) {
		u := obj.(*unstructured.Unstructured)
		if _, ok, _ := unstructured.NestedString(u.Object, "spec", "color"); !ok {
			_ = unstructured.SetNestedField(u.Object, "red", "spec", "color")
		}
	})
	for value, wants := range map[string]string{`"metadata":{"name":"p"},"spec":{}}`: "red",
		`"metadata":{"name":"p"},"spec":{"color":"blue"}}`: "blue"} {
		item := storage.NewItem("", []byte(widgetHead+value+"\n"), 7, storage.Facts{})
		var err error
		if item.Facts, err = c.FactsOf(item.Value()); err != nil || (item.Facts.Splice == 0) != (wants == "red") {
			t.Fatalf("%s: %+v, %v", value, item.Facts, err)
		}
		checkSplice(t, c, item)
		if b, err := c.AppendJSON(nil, item); err != nil ||
			!strings.Contains(string(b), `"spec":{"color":"`+wants+`"}`) {
			t.Errorf("%s is sent as %s, %v", value, b, err)
		}
	}
}

// FuzzJSONSplice: whatever lies in storage is either refused or sent as the object that it decodes to, and nothing is
// read or written beyond its bytes.
func FuzzJSONSplice(f *testing.F) {
	for _, c := range contracts() {
		for _, s := range append(c.docs, c.broken...) {
			f.Add([]byte(s+"\n"), int64(7))
		}
	}
	f.Add([]byte(widgetHead+`"metadata":{"a\"resourceVersion":"\\","resourceVersion\\":1}}`+"\n"), int64(0))
	f.Add([]byte(widgetHead+`"metadata":{"labels":{"a":"b"},"name":"p","z":[{"\"":"]}"}]},"x":"}"}`+"\n"), int64(1<<62))
	f.Fuzz(func(t *testing.T, value []byte, revision int64) {
		if revision < 0 {
			return
		}
		c := NewJSONCodec(widgetKind, newWidget, nil, nil)
		before := bytes.Clone(value)
		value = value[:len(value):len(value)]
		facts, err := c.FactsOf(value)
		item := storage.NewItem("", value, revision, facts)
		if err != nil {
			if b, err := c.AppendElement([]byte("x"), item); err != nil && string(b) != "x" {
				t.Fatalf("an error, and %q", b)
			}
			_, _ = c.MetadataMessage(item)
			return
		}
		checkSplice(t, c, item)
		if !bytes.Equal(value, before) {
			t.Fatal("the stored bytes were changed")
		}
	})
}

// BenchmarkJSONElement is what one custom resource costs a list, beside decoding and encoding it.
func BenchmarkJSONElement(b *testing.B) {
	c := contract{Codec: NewJSONCodec(widgetKind, newWidget, nil, nil)}
	item := c.stored(b, contracts()["JSON"].docs[1], 1234567)
	b.Run("spliced", func(b *testing.B) {
		buf := make([]byte, 0, 4096)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.AppendElement(buf, item); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decoded", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			obj, err := Object(c, item)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := json.Marshal(obj); err != nil {
				b.Fatal(err)
			}
		}
	})
}
