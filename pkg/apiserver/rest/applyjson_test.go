package rest

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"bonsai/pkg/docbounds"
)

// FuzzPlainConfig: what is read as plain JSON is, read as YAML, the same and without complaint.
func FuzzPlainConfig(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":{"b":[1,-2,true,false,null,"x"]}}` + "\n",
		`{"a":"\u003cb\u003e\n\t\r\b\f\\\""}`, `{"a" : 1 , "b":{ }}`, `{"<<":{"a":1},"b":"<<"}`,
		`{"a":1,"a":2}`, `{"a":1e3}`, `{"a":1.0}`, `{"a":-0}`, `{"a":9223372036854775807}`, `{"a":9223372036854775808}`,
		`{"a":"\/"}`, `{"a":"\ud83d\ude00"}`, `{"a":"é"}`, "{\"a\":\n1}", "{\t}",
		`{"y":"y","no":"no","on":1,"012":"012","~":"~","":""}`, `{"a":"# no","b":"&a","c":"*a","d":"!!str"}`,
		`{"a":[[],{}]}`, `{"a":"2001-01-01","b":".inf"}`, `{"` + strings.Repeat("k", 1100) + `":1}`, `null`, `[]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		got, ok := plainConfig([]byte(body), bodyBounds(0))
		if !ok {
			return
		}
		want := map[string]any{}
		if err := yaml.Unmarshal([]byte(body), &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %v as JSON, and %v, %v as YAML", body, got, want, err)
		}
		if _, err := sigsyaml.YAMLToJSONStrict([]byte(body)); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	})
}

// TestPlainConfig: what clients of every kind send is plain; what JSON and YAML read differently, or one of them not at
// all, is not.
func TestPlainConfig(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"\u003cb\u003e"}},"spec":{"replicas":3,"on":null,"l":[true]}}` + "\n": true,
		`{"a":1,"a":2}`: false, `{"a":1.5}`: false, `{"a":1e3}`: false, `{"a":"\/"}`: false,
		`{"a":"\ud83d\ude00"}`: false, `{"a":"é"}`: false,
		"{\"a\":\n1}": false, "a: 1": false, `{a: 1}`: false, `{"a":1} #`: false, `null`: false, `[]`: false, ``: false,
		`{"` + strings.Repeat("k", 1100) + `":1}`:                           false,
		`{"a":` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + `}`: false,
	} {
		if _, ok := plainConfig([]byte(body), bodyBounds(0)); ok != want {
			t.Errorf("%.100q is plain: %v", body, ok)
		}
	}
}

// BenchmarkApplyBody is what reading a configuration costs, as plain JSON and as any YAML.
func BenchmarkApplyBody(b *testing.B) {
	body := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p-1","labels":{"app":"bench","group":"g1"},"annotations":{"note":"a pod of an ordinary size"}},"spec":{"containers":[{"name":"app","image":"example.org/app:1.0","resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},"env":[{"name":"A","value":"1"},{"name":"POD_NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],"ports":[{"containerPort":8080,"name":"http"}],"readinessProbe":{"httpGet":{"path":"/healthz","port":"http"}}}],"tolerations":[{"key":"x","operator":"Exists"}]}}`)
	b.Run("JSON", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := plainConfig(body, bodyBounds(0)); !ok {
				b.Fatal("not plain")
			}
		}
	})
	b.Run("YAML", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			config := map[string]any{}
			if err := errors.Join(docbounds.YAML(body, bodyBounds(0)), yaml.Unmarshal(body, &config)); err != nil {
				b.Fatal(err)
			}
			if _, err := sigsyaml.YAMLToJSONStrict(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
