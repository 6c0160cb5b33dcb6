package write

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParseDryRun(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]DryRun{"none": DryRunNone, "client": DryRunClient, "server": DryRunServer,
		"unchanged": DryRunClient, "true": DryRunClient, "false": DryRunNone} {
		if got, _, err := ParseDryRun(value); got != want || err != nil {
			t.Errorf("%s: %v, %v", value, got, err)
		}
	}
	if _, _, err := ParseDryRun("foo"); err == nil {
		t.Error("foo was accepted")
	}
}

func TestParseValidation(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"": "", "true": "Strict", "strict": "Strict", "warn": "Warn",
		"ignore": "Ignore", "false": "Ignore"} {
		if got, err := ParseValidation(value); got != want || err != nil {
			t.Errorf("%q: %v, %v", value, got, err)
		}
	}
}

func TestSplitPairs(t *testing.T) {
	t.Parallel()
	objects, pairs, err := SplitPairs([]string{"cm", "c", "=x", "-", "a=b", "c-"}, "label")
	if err != nil || len(objects) != 4 || len(pairs) != 2 {
		t.Errorf("%q, %q, %v", objects, pairs, err)
	}
}

// TestConfiguration: the annotation is not kept in itself, and everything else is.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	c := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"a": "<b>"}}
	for range 2 {
		if err := SetLastApplied(c); err != nil {
			t.Fatal(err)
		}
		got, err := LastApplied(c)
		const want = `{"apiVersion":"v1","data":{"a":"\u003cb\u003e"},"kind":"ConfigMap","metadata":{"annotations":{},"name":"c"}}` + "\n"
		if string(got) != want || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

// TestDiff3 merges lists by their keys where the type is known, and replaces them where it is not.
func TestDiff3(t *testing.T) {
	t.Parallel()
	pod := func(containers string) []byte {
		return []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":` + containers +
			`}}`)
	}
	const a, b, side = `{"name":"a","image":"1"}`, `{"name":"a","image":"2"}`, `{"name":"side","image":"s"}`
	got, _, err := Diff3(corev1.SchemeGroupVersion.WithKind("Pod"), pod("["+a+"]"), pod("["+b+"]"),
		pod("["+a+","+side+"]"), true)
	const want = `{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"image":"2","name":"a"}]}}`
	if string(got) != want || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	got, kind, err := Diff3(schema.GroupVersionKind{Group: "x", Version: "v1", Kind: "Foo"}, []byte(`{"l":[1],"o":1}`),
		[]byte(`{"l":[2]}`), []byte(`{"l":[1],"o":1,"k":1}`), true)
	if string(got) != `{"l":[2],"o":null}` || kind != "application/merge-patch+json" || err != nil {
		t.Errorf("got %s, %s, %v", got, kind, err)
	}
	if _, _, err := Diff3(corev1.SchemeGroupVersion.WithKind("Pod"), nil, []byte(`{"metadata":{"name":"q"}}`),
		pod("[]"), true); err == nil {
		t.Error("a change of the name was accepted")
	}
}
