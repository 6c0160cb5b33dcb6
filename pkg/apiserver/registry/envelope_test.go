package registry

import (
	"bytes"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/storage"
)

func podCodec() *ProtobufCodec {
	return NewProtobufCodec(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, func() runtime.Object {
		return &corev1.Pod{}
	},
		func(obj runtime.Object) fields.Set {
			return fields.Set{"spec.nodeName": obj.(*corev1.Pod).Spec.NodeName}
		})
}

const somePod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"ns","labels":{"a":"b"},"resourceVersion":"5"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`

// FuzzParseEnvelope holds ParseEnvelope against the generated code of runtime.Unknown: both must read a document alike.
func FuzzParseEnvelope(f *testing.F) {
	codec := podCodec()
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(somePod), pod); err != nil {
		f.Fatal(err)
	}
	draft, err := codec.Draft(pod)
	if err != nil {
		f.Fatal(err)
	}
	doc := draft.Value
	f.Add(doc)
	f.Add(doc[:len(doc)-7])
	f.Add([]byte(envelopeMagic))
	f.Add([]byte("k8s\x00\x0a\x04\x0a\x02v1\x0a\x05\x12\x03Pod\x12\x01x\x12\x02yz\x18\x07\x25abcd"))
	f.Add([]byte("k8s\x00\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		before := bytes.Clone(doc)
		e, err := ParseEnvelope(doc)
		if !bytes.Equal(doc, before) {
			t.Fatal("the document was changed")
		}
		if !bytes.HasPrefix(doc, []byte(envelopeMagic)) {
			if err == nil {
				t.Fatal("accepted without magic")
			}
			return
		}
		var unknown runtime.Unknown
		if unknown.Unmarshal(doc[len(envelopeMagic):]) != nil {
			return // it knows each field's type
		}
		same := func(e Envelope) bool {
			return string(e.APIVersion) == unknown.APIVersion && string(e.Kind) == unknown.Kind &&
				bytes.Equal(e.Raw, unknown.Raw)
		}
		if err == nil && !same(e) {
			t.Fatalf("read %q %q %x, want %+v", e.APIVersion, e.Kind, e.Raw, unknown)
		}
		// Groups and overlong numbers in fields that nobody has may be refused, but not what anyone would write.
		clean, err := unknown.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if e, err := ParseEnvelope(append([]byte(envelopeMagic), clean...)); err != nil || !same(e) {
			t.Fatalf("rewritten: %+v, %v, want %+v", e, err, unknown)
		}
	})
}

func sameLabels(facts *storage.Facts, want map[string]string) bool {
	for k, v := range want {
		if got, ok := facts.Labels().Lookup(k); !ok || got != v {
			return false
		}
	}
	return true
}

// FuzzStoredBytes: what is taken out of a stored value without decoding it is what decoding gives.
func FuzzStoredBytes(f *testing.F) {
	f.Add([]byte(somePod), int64(7))
	f.Add([]byte(`{"metadata":{}}`), int64(0))
	f.Add([]byte(`{"metadata":{"name":"p","creationTimestamp":"2026-01-02T03:04:05Z","managedFields":[{"fieldsV1":{"f:a":{}}}]}}`), int64(1<<62))
	f.Fuzz(func(t *testing.T, body []byte, revision int64) {
		pod := &corev1.Pod{}
		if json.Unmarshal(body, pod) != nil || revision < 0 {
			return
		}
		codec := podCodec()
		draft, err := codec.Draft(pod)
		if err != nil {
			return // times before the year 0 and the like
		}
		value := draft.Value
		obj, err := codec.Decode(value, revision)
		if err != nil {
			t.Fatalf("cannot decode what was encoded: %v", err)
		}
		want := obj.(*corev1.Pod)
		item := storage.NewItem("", value, revision, storage.Facts{})
		if m, err := codec.Metadata(item); err != nil ||
			revision > 0 && !equality.Semantic.DeepEqual(*m, want.ObjectMeta) {
			t.Fatalf("metadata %+v, %v, want %+v", m, err, want.ObjectMeta)
		}
		doc, err := AppendDocument(codec, nil, item)
		if size, sizeErr := DocumentSize(codec, item); err != nil || sizeErr != nil || size != len(doc) {
			t.Fatalf("%d bytes announced, %d made: %v, %v", size, len(doc), err, sizeErr)
		}
		e, err := ParseEnvelope(doc)
		if err != nil || string(e.Kind) != "Pod" {
			t.Fatalf("the answer's envelope: %+v, %v", e, err)
		}
		got := codec.New().(*corev1.Pod)
		if err := got.Unmarshal(e.Raw); err != nil || !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("the answer is %+v, %v, want %+v", got, err, want)
		}
		facts, err := codec.FactsOf(value)
		if err != nil || facts.Fields().Get("metadata.name") != want.Name ||
			facts.Fields().Get("spec.nodeName") != want.Spec.NodeName || !sameLabels(&facts, want.Labels) {
			t.Fatalf("facts %+v, %v", facts, err)
		}
	})
}
