package strictjson

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"

	fastjson "github.com/go-json-experiment/json"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/randfill"

	"bonsai/api/scheme"
)

// TestDecode fills objects of every kind at random, and harms their documents at random. What the fast decoder accepts
// is what the library accepts without a word, with the same result; what is not harmed, it accepts.
func TestDecode(t *testing.T) {
	t.Parallel()
	types := scheme.New().AllKnownTypes()
	kinds := make([]string, 0, len(types))
	byKind := map[string]reflect.Type{}
	for gvk, typ := range types {
		if gvk.Version == runtime.APIVersionInternal || typ == reflect.TypeFor[metav1.Table]() {
			continue // the first is never JSON; in the second, which no request has, are values of any type
		}
		name := gvk.String()
		kinds, byKind[name] = append(kinds, name), typ
	}
	sort.Strings(kinds) // the seed decides, not the map
	random := rand.New(rand.NewPCG(1, 2))
	harmed, accepted := 0, 0
	for _, kind := range kinds {
		typ := byKind[kind]
		for round := range 3 {
			doc := document(t, typ, uint64(round))
			if !check(t, kind, typ, doc) {
				t.Fatalf("%s: the fast decoder refuses %s", kind, doc)
			}
			for range 8 {
				harmed++
				if check(t, kind, typ, harm(random, doc)) {
					accepted++
				}
			}
		}
	}
	if accepted == 0 || accepted == harmed {
		t.Errorf("%d of %d harmed documents were accepted: the test harms too much or nothing", accepted, harmed)
	}
}

// check compares both decoders on doc and reports whether the fast one accepts it.
func check(t *testing.T, kind string, typ reflect.Type, doc []byte) bool {
	t.Helper()
	fast := reflect.New(typ).Interface()
	accepted := fastjson.Unmarshal(doc, fast, faultless) == nil
	want := reflect.New(typ).Interface()
	strict, err := kjson.UnmarshalStrict(doc, want)
	if accepted && (err != nil || len(strict) > 0) {
		t.Fatalf("%s: the fast decoder accepts what the library refuses with %v %v: %s", kind, err, strict, doc)
	}
	if accepted && !reflect.DeepEqual(fast, want) {
		t.Fatalf("%s: the fast decoder made\n%#v of %s, the library\n%#v", kind, fast, doc, want)
	}
	got := reflect.New(typ).Interface()
	gotStrict, gotErr := Decode(doc, got)
	if fmt.Sprint(gotStrict, gotErr) != fmt.Sprint(strict, err) || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: Decode says %v %v of %s, the library %v %v", kind, gotStrict, gotErr, doc, strict, err)
	}
	loose, wantLoose := reflect.New(typ).Interface(), reflect.New(typ).Interface()
	looseErr, wantErr := DecodeLoosely(doc, loose), kjson.UnmarshalCaseSensitivePreserveInts(doc, wantLoose)
	if fmt.Sprint(looseErr) != fmt.Sprint(wantErr) || !reflect.DeepEqual(loose, wantLoose) {
		t.Fatalf("%s: DecodeLoosely says %v of %s, the library %v", kind, looseErr, doc, wantErr)
	}
	return accepted
}

// document is an object of typ, filled at random, as JSON.
func document(t *testing.T, typ reflect.Type, seed uint64) []byte {
	t.Helper()
	obj := reflect.New(typ).Interface()
	randfill.NewWithSeed(int64(seed)).NilChance(.4).NumElements(0, 3).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(1e6), resource.DecimalSI)
		},
		func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(c.Int31()) },
		func(v *metav1.Time, c randfill.Continue) { v.Time = time.Unix(c.Int63n(1e9), 0) },
		func(v *metav1.MicroTime, c randfill.Continue) { v.Time = time.UnixMicro(c.Int63n(1e15)) },
		func(v *metav1.FieldsV1, _ randfill.Continue) { v.Raw = []byte(`{"f:a":{}}`) },
		func(v *runtime.RawExtension, _ randfill.Continue) { v.Raw = []byte(`{"a":[1,"b"]}`) },
		func(v *apiextensionsv1.JSON, _ randfill.Continue) { v.Raw = []byte(`{"a":[1,"b"]}`) },
		func(v *apiextensionsv1.JSONSchemaProps, _ randfill.Continue) { v.Type = "string" },
	).Fill(obj)
	doc, err := json.Marshal(obj)
	if err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
	return doc
}

// harm changes one thing in doc: a value for one of another form, a name's case, a name that is there twice or is of no
// field, or bytes.
func harm(random *rand.Rand, doc []byte) []byte {
	values := []string{
		`null`, `{}`, `[]`, `""`, `"a"`, `0`, `-0`, `1.0`, `1e3`, `1.5`, `-1`, `99999999999999999999`, `true`,
		`"\ud800"`, `"\u0000"`, "\"\xff\"",
		`{"a":1}`, `[null]`, `["a"]`, `[1]`, `{"a":null}`, `"1"`, `"1Gi"`, `"2026-01-02T03:04:05Z"`,
		`"2026-01-02T03:04:05.123456Z"`, `"YQ=="`, `"YQ"`, `"Y Q=="`,
		`{"kind":"x"}`, `[{}]`, `[[]]`,
	}
	text := string(doc)
	var colons []int
	for i := range text {
		if text[i] == ':' && i > 0 && text[i-1] == '"' {
			colons = append(colons, i)
		}
	}
	if len(colons) == 0 {
		return []byte(values[random.IntN(len(values))])
	}
	at := colons[random.IntN(len(colons))]
	name := strings.LastIndexByte(text[:at-1], '"')
	value := json.NewDecoder(strings.NewReader(text[at+1:]))
	var raw json.RawMessage
	if value.Decode(&raw) != nil { // the colon was in a string
		return doc[:random.IntN(len(doc))]
	}
	rest := text[at+1+len(raw):]
	other := values[random.IntN(len(values))]
	switch random.IntN(8) {
	case 0:
		return []byte(text[:name] + strings.ToUpper(text[name:at]) + text[at:])
	case 1:
		return []byte(text[:name] + text[name:at] + ":" + other + "," + text[name:])
	case 2:
		return []byte(text[:name] + `"unknown":` + other + "," + text[name:])
	case 3:
		return doc[:random.IntN(len(doc))]
	case 4:
		return []byte(text + " " + other)
	default:
		return []byte(text[:at+1] + other + rest)
	}
}

// FuzzDecode does the same with documents that a fuzzer makes, for the kind that has most forms of fields.
func FuzzDecode(f *testing.F) {
	for _, doc := range []string{`{}`, `{"spec":{"containers":[{"name":"a","env":[{"name":"a"}]}]}}`,
		`{"metadata":{"labels":null,"creationTimestamp":null}}`, `{"Spec":{}}`} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) { check(t, "Pod", reflect.TypeFor[corev1.Pod](), doc) })
}

func BenchmarkDecode(b *testing.B) {
	doc := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","labels":{"app":"a"}},"spec":{"containers":[{"name":"main",` +
		`"image":"registry.k8s.io/pause:3.10","resources":{"requests":{"cpu":"100m","memory":"64Mi"}},"ports":[{"containerPort":80}]}]}}`)
	for name, decode := range map[string]func([]byte, any) ([]error, error){
		"ours":    Decode,
		"library": func(doc []byte, into any) ([]error, error) { return kjson.UnmarshalStrict(doc, into) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if strict, err := decode(doc, new(corev1.Pod)); err != nil || strict != nil {
					b.Fatal(strict, err)
				}
			}
		})
	}
}
