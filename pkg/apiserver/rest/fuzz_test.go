package rest

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/api/scheme"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage"
)

// FuzzInfoOf: authorization and routing both go by the Info, so that it must say exactly what the path says.
func FuzzInfoOf(f *testing.F) {
	for _, path := range []string{"/", "/api", "/api/v1/pods", "/api/v1/namespaces/x/pods/p/log",
		"/apis/apps/v1/namespaces/x/deployments/d/scale", "/api/v1/watch/namespaces/x/pods",
		"/api/v1/namespaces/x/status", "/api/v1/namespaces/x/namespaces/y", "/api/v1/namespaces//namespaces/y",
		"/api/v1/pods//proxy", "/api/v1/watch/nodes/n/proxy", "/apis//v1/x", "//api/v1/pods",
		"/api/v1/namespaces//pods", "/api/v1/nodes/n/proxy//a/../b/", "/api/v1/namespaces/x/pods/.."} {
		for _, method := range []string{"GET", "DELETE", "POST", "OPTIONS"} {
			f.Add(method, path, "watch=1&fieldSelector=metadata.name%3Dp")
		}
	}
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", ""}
	f.Fuzz(func(t *testing.T, method, path, query string) {
		i := InfoOf(&http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}})
		if !i.IsResource {
			if i.Resource != "" || i.Namespace != "" || i.Name != "" || i.Verb != strings.ToLower(method) {
				t.Fatalf("%s %q: %+v", method, path, i)
			}
			return
		}
		if !slices.Contains(verbs, i.Verb) || len(i.Parts) == 0 || i.Parts[0] != i.Resource {
			t.Fatalf("%s %q: %+v", method, path, i)
		}
		trimmed := strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
		if rest := strings.Join(i.Parts, "/"); !strings.HasSuffix(trimmed, "/"+rest) {
			t.Fatalf("%q does not end with %q", path, rest)
		}
		if i.Namespace != "" && !strings.Contains(trimmed+"/", "/namespaces/"+i.Namespace+"/") {
			t.Fatalf("%q: namespace %q", path, i.Namespace)
		}
		if len(i.Parts) > 1 && i.Name != i.Parts[1] && i.Parts[1] != "" ||
			len(i.Parts) > 2 && i.Subresource != i.Parts[2] {
			t.Fatalf("%q: %+v", path, i)
		}
		if strings.Contains(i.Name, "/") {
			t.Fatalf("%q?%s: the name is %q", path, query, i.Name)
		}
		for _, namespaced := range []bool{true, false} {
			if hasPlace(&resources.Row{Namespaced: namespaced}, i) && pathOf(i, namespaced) != trimmed {
				t.Fatalf("%s %q is served (namespaced: %v), which is not what was authorized: %+v", method, path,
					namespaced, i)
			}
		}
	})
}

// pathOf is the path that means what i says, and nothing but that, of a resource with or without namespaces; empty if
// there is none. It is made of what authorization looks at, so that another path that is served acts on something else.
func pathOf(i *request.Info, namespaced bool) string {
	head := "api/" + i.APIVersion + "/"
	if i.APIPrefix == "apis" {
		head = "apis/" + i.APIGroup + "/" + i.APIVersion + "/"
	}
	tail := i.Resource
	if namespaced && i.Namespace != "" {
		tail = "namespaces/" + i.Namespace + "/" + tail
	}
	if len(i.Parts) > 1 { // else a name is that of a field selector
		tail += "/" + i.Name
	}
	if i.Subresource != "" {
		tail = strings.Join(append([]string{tail, i.Subresource}, i.Parts[3:]...), "/")
	}
	if !namespaced && i.Namespace != "" && (i.Resource != "namespaces" || i.Namespace != i.Name) {
		return ""
	}
	if i.WatchPrefix && (i.Subresource != "" || i.Verb != "watch" && i.Verb != "") {
		return ""
	}
	if i.WatchPrefix {
		tail = "watch/" + tail
	}
	return head + tail
}

// FuzzDecode: whatever the body is, the answer is an object or a Status error of the client's, and what is accepted
// strictly is accepted alike otherwise.
func FuzzDecode(f *testing.F) {
	gvk := corev1.SchemeGroupVersion.WithKind("Pod")
	media := []string{typeJSON, typeYAML, typeProtobuf}
	for _, body := range []string{
		"", "null", "{}", "[]", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1"}}}]}}`,
		`{"kind":"Service","apiVersion":"v1"}`, `{"apiVersion":"a/b/c"}`, `{"spec":{"priority":"x"}}`,
		`{"spec":{"a":1,"nodeName":"n","nodeName":"m"}}`,
		"kind: Pod\nspec:\n  nodeName: &a n\n  hostname: *a\n", "a: &a [*a]",
		"k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x05\x0a\x03\x0a\x01p\x1a\x00\x22\x00", strings.Repeat("[", 2000),
	} {
		for i := range media {
			f.Add([]byte(body), byte(i))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, kind byte) {
		m := media[int(kind)%len(media)]
		pod, same := &corev1.Pod{}, &corev1.Pod{}
		err := decode(body, m, wantedKind(gvk), pod, metav1.FieldValidationStrict, func(string) {})
		loose := decode(body, m, wantedKind(gvk), same, metav1.FieldValidationIgnore, func(string) {})
		for _, err := range []error{err, loose} {
			var status apierrors.APIStatus
			if err != nil && (!errors.As(err, &status) || status.Status().Code != http.StatusBadRequest) {
				t.Fatalf("%s %q: %v is no 400", m, body, err)
			}
		}
		if err != nil {
			return
		}
		if loose != nil || pod.GroupVersionKind() != gvk || pod.String() != same.String() {
			t.Fatalf("%s %q: strictly %v, otherwise %v, %v", m, body, pod, same, loose)
		}
		if _, err := podCodec().Draft(pod); err != nil && m == typeProtobuf {
			t.Fatalf("%q was accepted but cannot be stored: %v", body, err)
		}
	})
}

// wantedKind is a body's of a kind with a Go type.
func wantedKind(gvk schema.GroupVersionKind) wanted {
	return wanted{GroupVersionKind: gvk, kinds: allKinds(), internal: resources.InternalPackage(gvk.Group)}
}

var allKinds = sync.OnceValue(scheme.New)

func podCodec() registry.Codec { return registry.NewCodec(podRow()) }

func widgetCodec() registry.Codec {
	return registry.NewJSONCodec(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
		func() runtime.Object {
			return &unstructured.Unstructured{}
		}, nil, nil)
}

func podRow() *resources.Row {
	return &resources.Row{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, New: func() runtime.Object {
		return &corev1.Pod{}
	}, FieldNames: []string{"spec.nodeName", "status.phase"}}
}

// FuzzSelectors: a selector is refused with a 400 or selects what the library's selectors of the same text select.
func FuzzSelectors(f *testing.F) {
	for _, s := range [][2]string{{"", ""}, {"a=b", "metadata.name=p"},
		{"a in (b,c),!d", "spec.nodeName!=n,status.phase="}, {"a>5", `metadata.namespace=x\,y`}, {"a==", "nosuch=1"},
		{"a notin ()", "="}, {"(", `a\`}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, label, field string) {
		selects, err := selectionOf(&catalog.Route{Resource: &catalog.Resource{Entry: catalog.Entry{Row: podRow()}}},
			&metav1.ListOptions{LabelSelector: label, FieldSelector: field}, "")
		if err != nil {
			if !apierrors.IsBadRequest(err) {
				t.Fatalf("%q %q: %v is no 400", label, field, err)
			}
			return
		}
		byLabel, labelErr := labels.Parse(label)
		byField, fieldErr := fields.ParseSelector(field)
		if labelErr != nil || fieldErr != nil {
			t.Fatalf("%q %q was accepted: %v, %v", label, field, labelErr, fieldErr)
		}
		for _, c := range []struct {
			labels labels.Set
			fields fields.Set
		}{
			{labels.Set{"a": "b"}, fields.Set{"metadata.name": "p", "spec.nodeName": "n", "status.phase": ""}},
			{labels.Set{"a": "6", "d": "", "long": strings.Repeat("x", 300)},
				fields.Set{"metadata.name": "q", "metadata.namespace": "x,y", "spec.nodeName": "",
					"status.phase": "Running"}},
			{},
		} {
			names := slices.Sorted(maps.Keys(c.fields))
			item := &storage.Item{Facts: storage.NewFacts(&names, c.labels, c.fields)}
			want := byLabel.Matches(c.labels) && byField.Matches(c.fields)
			if got := selects == nil || selects(item); got != want {
				t.Fatalf("%q %q selects %+v: %v, want %v", label, field, c, got, want)
			}
		}
	})
}

// FuzzNegotiate: any Accept header gives a form this server has, or a 406.
func FuzzNegotiate(f *testing.F) {
	for _, h := range []string{"", "*/*", typeProtobuf + ",application/json",
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "text/html;q=0.9, application/*;q=NaN",
		"a;b;=,,;", "application/json;as=Table;as=x"} {
		f.Add(h, byte(forList))
		f.Add(h, byte(forStream)+4)
	}
	f.Fuzz(func(t *testing.T, header string, p byte) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", header)
		types := [][]string{podCodec().MediaTypes(), widgetCodec().MediaTypes()}[p/4%2]
		a, err := negotiate(r, purpose(p%4), types)
		if err != nil {
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != http.StatusNotAcceptable {
				t.Fatalf("%q: %v is no 406", header, err)
			}
			return
		}
		if !slices.Contains(allTypes(), a.media) || a.as == "" && !slices.Contains(types, a.media) ||
			a.as != "" && a.version == "" || a.pretty && a.media != typeJSON {
			t.Fatalf("%q: %+v", header, a)
		}
	})
}
