package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/storage"
)

// fieldSetOf is a field set of about 200 bytes.
func fieldSetOf(field string) string {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, `,"f:%s%d":{".":{}}`, field, i)
	}
	return `{"f:spec":{` + b.String()[1:] + `}}`
}

func managed(note string, sets ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{"note": note}}}
	pod.Kind, pod.APIVersion = "Pod", "v1"
	for i, s := range sets {
		e := metav1.ManagedFieldsEntry{Manager: fmt.Sprint(i), FieldsType: "FieldsV1"}
		if s != "" {
			e.FieldsV1 = metav1.NewFieldsV1(s)
		}
		pod.ManagedFields = append(pod.ManagedFields, e)
	}
	return pod
}

// TestSharedFieldSets: items whose objects have the same field sets hold their text once, from the second such object
// on, as they are written and as they are read; and everything that is made of such an item is what is made of one that
// shares nothing.
func TestSharedFieldSets(t *testing.T) {
	t.Parallel()
	one, two := fieldSetOf("one"), fieldSetOf("two")
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		shared int // texts in the value and, where other, in its JSON
		inJSON int
	}{
		"none":               {managed(""), 0, 0},
		"one":                {managed("", one), 1, 1},
		"two":                {managed("", one, two), 2, 2},
		"the same twice":     {managed("", one, one), 2, 2},
		"one is short":       {managed("", `{"f:spec":{}}`, one, "", two), 2, 2},
		"also a note":        {managed(one, one), 1, 1},
		"note of JSON":       {managed(`"fieldsV1":{"fieldsV1":0}`, one), 1, 1},
		"not compact":        {managed("", one+" ", two), 2, 1},
		"escaped":            {managed("", strings.Replace(one, "f:spec", "f:<spec>", 1), two), 2, 1},
		"like a placeholder": {managed("", two, `{"fieldsV1": 0}`, one), 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			codec := podCodec()
			var item *storage.Item
			for range 2 {
				d, err := codec.Draft(c.pod)
				if err != nil {
					t.Fatal(err)
				}
				item = storage.NewItem("k", d.Value, 7, *d.Facts)
				if !bytes.Equal(item.Value(), d.Value) {
					t.Fatalf("%q is kept as %q", d.Value, item.Value())
				}
			}
			if got := len(item.Facts.Shared); got != c.shared || item.Bytes().Len()-item.Held() < 100*c.shared {
				t.Errorf("%d texts are shared, want %d; %d of %d bytes are held", got, c.shared, item.Held(),
					item.Bytes().Len())
			}
			facts, err := codec.FactsOf(item.Value())
			if err != nil || fmt.Sprint(facts.Shared) != fmt.Sprint(item.Facts.Shared) {
				t.Errorf("read: %v, %v; written: %v", facts.Shared, err, item.Facts.Shared)
			}
			plain := storage.NewItem("k", item.Value(), 7, storage.Facts{})
			for form, appended := range map[string]func([]byte, *storage.Item) ([]byte,
				error){"message": codec.AppendMessage, "JSON": codec.AppendJSON, "element": codec.AppendElement} {
				got, err := appended(nil, item)
				want, wantErr := appended(nil, plain)
				if err != nil || wantErr != nil || !bytes.Equal(got, want) {
					t.Errorf("%s is\n%s\nwant\n%s\n%v %v", form, got, want, err, wantErr)
				}
			}
			obj, err := Object(codec, item)
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.Marshal(obj)
			doc, docErr := codec.document(item)
			if err != nil || docErr != nil || !bytes.Equal(doc.Flat(), want) ||
				doc.Len()-len(doc.Front()) < 100*c.inJSON {
				t.Errorf("the document is\n%s\nwant\n%s\n%v %v", doc.Flat(), want, err, docErr)
			}
		})
	}
}

// TestFieldSetsAreForgotten: however many there are, few are known.
func TestFieldSetsAreForgotten(t *testing.T) {
	t.Parallel()
	var f fieldSets
	for i := range maxSeen + 10 {
		set := []byte(fieldSetOf(fmt.Sprint("x", i)))
		for range 2 {
			f.of(set)
		}
		if len(f.young)+len(f.old) > maxTexts || len(f.seen) > maxSeen {
			t.Fatalf("after %d sets %d and %d are known", i, len(f.young)+len(f.old), len(f.seen))
		}
	}
	if _, ok := f.of([]byte(fieldSetOf(fmt.Sprint("x", maxSeen+9)))); !ok {
		t.Error("the last one is not known")
	}
	if _, ok := f.of(bytes.Repeat([]byte{'x'}, maxSharedText+1)); ok {
		t.Error("a huge one is kept")
	}
}

// TestSharedFieldSetsOfJSON: so do items of custom resources.
func TestSharedFieldSetsOfJSON(t *testing.T) {
	t.Parallel()
	one, two := fieldSetOf("one"), fieldSetOf("two")
	entry := func(set string) string { return `{"fieldsType":"FieldsV1","fieldsV1":` + set + `,"manager":"m"}` }
	for name, c := range map[string]struct {
		metadata string
		shared   int
	}{
		"none": {`"name":"p"`, 0},
		"one":  {`"managedFields":[` + entry(one) + `],"name":"p"`, 1},
		"two":  {`"managedFields":[` + entry(one) + "," + entry(two) + `],"name":"p","uid":"u"`, 2},
		"one is short": {`"managedFields":[` + entry(`{"f:spec":{}}`) + "," + entry(two) + `],"name":"p","uid":"u"`,
			1},
		"one without":      {`"managedFields":[{"manager":"m"},` + entry(two) + `],"name":"p","uid":"u"`, 1},
		"an empty list":    {`"managedFields":[],"name":"p"`, 0},
		"no list":          {`"managedFields":null,"name":"p"`, 0},
		"behind the place": {`"name":"p","uid":"u","zz":[` + entry(one) + `]`, 0},
		"in another order": {`"uid":"u","name":"p","managedFields":[` + entry(one) + `]`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			codec := NewJSONCodec(widgetKind, newWidget, nil, nil)
			value := []byte(widgetHead + `"metadata":{` + c.metadata + "}}\n")
			var item *storage.Item
			for range 2 {
				facts, err := codec.FactsOf(value)
				if err != nil {
					t.Fatal(err)
				}
				item = storage.NewItem("k", bytes.Clone(value), 7, facts)
			}
			if got := len(item.Facts.Shared); got != c.shared || item.Bytes().Len()-item.Held() < 100*c.shared ||
				!bytes.Equal(item.Value(), value) {
				t.Errorf("%d texts are shared, want %d; %d of %d bytes are held of %s", got, c.shared, item.Held(),
					item.Bytes().Len(), item.Value())
			}
			for _, revision := range []int64{0, 7} {
				plain, shares := storage.NewItem("k", value, revision, storage.Facts{Splice: item.Facts.Splice}),
					storage.NewItem("k", value, revision, item.Facts)
				want, err := codec.AppendElement(nil, plain)
				if err != nil || !json.Valid(want) {
					t.Fatal(string(want), err)
				}
				size, err := codec.ElementSize(shares)
				if got, _ := codec.AppendElement(nil, shares); string(got) != string(want) || size != len(got) ||
					err != nil {
					t.Errorf("got  %s\nwant %s; %d bytes, %v", got, want, size, err)
				}
			}
		})
	}
}
