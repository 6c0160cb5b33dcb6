package rest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/storage"
)

// TestNotAcceptable has the words of Kubernetes' 406: which media types there are, or why a form does not fit.
func TestNotAcceptable(t *testing.T) {
	t.Parallel()
	const known = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
	const streams = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
	as := func(kind string) string { return "application/json;as=" + kind + ";v=v1;g=meta.k8s.io" }
	for _, c := range []struct {
		accept, want string
		p            purpose
		details      bool
		types        []string
	}{
		{"text/html", "406: Not Acceptable\n\nAvailable representations: " + known, forObject, true, allTypes()},
		{"text/html", "406: Not Acceptable\n\nAvailable representations: " + known + streams, forList, true,
			allTypes()},
		{as("Foo"), "only the following media types are accepted: " + known, forObject, false, allTypes()},
		{as("PartialObjectMetadata"), "you requested PartialObjectMetadata, but the requested object is a list",
			forList, false, allTypes()},
		{as("PartialObjectMetadataList") + ",application/json",
			"you requested PartialObjectMetadataList, but the requested object is not a list", forObject, false,
			allTypes()},
		{as("PartialObjectMetadataList"),
			"you requested PartialObjectMetadataList, but the requested object is not a list", forObject, false,
			allTypes()},
		{"application/yaml", "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch", forStream, false, allTypes()},
		{typeProtobuf, "only the following media types are accepted: " + known, forObject, false,
			widgetCodec().MediaTypes()},
		{typeProtobuf + ";stream=watch", "only the following media types are accepted: " + known, forStream, false,
			widgetCodec().MediaTypes()},
		{"application/cbor", "only the following media types are accepted: " + known, forList, false,
			widgetCodec().MediaTypes()},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", c.accept)
		_, err := negotiate(r, c.p, c.types)
		if s := statusOf(err); s.Message != c.want || s.Code != http.StatusNotAcceptable ||
			(s.Details != nil) != c.details {
			t.Errorf("%s for %d: %+v", c.accept, c.p, s)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	gvk := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	for _, c := range []struct{ name, media, body, want string }{
		{"a version that is none", typeJSON, `{"apiVersion":"a/b/c","kind":"ConfigMap"}`,
			`the object provided is unrecognized (must be of type ConfigMap): unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","kind":" ...)`},
		{"another version", typeJSON, `{"apiVersion":"v2","kind":"ConfigMap"}`,
			`ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2"`},
		{"another kind without version", typeJSON, `{"kind":"Pod"}`,
			`Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion`},
		{"a kind that is none", typeJSON, `{"kind":"Nope"}`,
			`Nope in version "v1" cannot be handled as a ConfigMap: no kind "Nope" is registered for version "v1"`},
		{"not protobuf", typeProtobuf, `{"metadata":{}}`,
			`the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({"metadata":{}})`},
		{"a wrong type", typeJSON, `{"data":{"a":1}}`,
			`ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string`},
	} {
		err := decode([]byte(c.body), c.media, wantedKind(gvk), &corev1.ConfigMap{}, metav1.FieldValidationStrict,
			func(string) {})
		if s := statusOf(err); !apierrors.IsBadRequest(err) || s.Message != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, s.Message, c.want)
		}
	}
}

func TestYAMLDuplicatesAreWarnings(t *testing.T) {
	t.Parallel()
	var got []string
	body := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, name: b}\n"
	if err := decode([]byte(body), typeYAML, wantedKind(corev1.SchemeGroupVersion.WithKind("ConfigMap")),
		&corev1.ConfigMap{}, "", func(s string) {
			got = append(got, s)
		}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != `line 3: key "name" already set in map` {
		t.Errorf("warnings: %q", got)
	}
}

// TestWatchOptions: who knows bookmarks and names no version is told where the initial events end.
func TestWatchOptions(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]storage.WatchOptions{
		"":                         {},
		"resourceVersion=7":        {Revision: 7},
		"allowWatchBookmarks=true": {Bookmarks: true, Initial: true},
		"allowWatchBookmarks=true&resourceVersion=0": {Bookmarks: true,
			Initial: true},
		"allowWatchBookmarks=true&resourceVersion=7": {Bookmarks: true,
			Revision: 7},
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan":                           {Initial: true},
		"sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true": {Bookmarks: true},
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=7&bogus=ignored": {Initial: true,
			Revision: 7},
	} {
		q, err := url.ParseQuery("watch=true&" + query)
		if err != nil {
			t.Fatal(err)
		}
		opts, err := listOptions(q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := storageWatch(opts, nil)
		if err != nil || got.Bookmarks != want.Bookmarks || got.Initial != want.Initial ||
			got.Revision != want.Revision {
			t.Errorf("%s: %+v, %v", query, got, err)
		}
	}
}

func TestInfoOfOddPaths(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"//api/v1/pods": false, "/apis//v1/pods": false, "/api/v1/pods/": true,
		"/apis/apps/v1/deployments": true} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path = path
		if got := InfoOf(r); got.IsResource != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
	r := httptest.NewRequest("FOO", "/api/v1/pods", nil)
	if got := InfoOf(r); got.Verb != "" {
		t.Errorf("an unknown method is the verb %q", got.Verb)
	}
}

func TestContinueAndVersion(t *testing.T) {
	t.Parallel()
	_, err := storageList(&metav1.ListOptions{Continue: "x", ResourceVersion: "1"}, nil)
	if !apierrors.IsBadRequest(err) || err.Error() != "specifying resource version is not allowed when using continue" {
		t.Errorf("%v", err)
	}
	if w := wantedKind(corev1.SchemeGroupVersion.WithKind("Pod")); w.complete(schema.GroupVersionKind{}).Kind != "Pod" {
		t.Error("a body without kind is not taken as what the request is for")
	}
}
