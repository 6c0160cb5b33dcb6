package controllertest

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"bonsai/api/scheme"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/controller"
)

// Call is one request that a controller made.
type Call struct {
	Method, Path string
	Query        url.Values
	// Object is the decoded body, nil if there is none or if it is a patch; Body are its bytes.
	Object runtime.Object
	Body   []byte
}

// Name is the call in short, "DELETE /api/v1/namespaces/ns/pods/p".
func (c Call) Name() string { return c.Method + " " + c.Path }

// Fake stands in for the API server where a test is about single answers, such as errors, that a real one gives rarely.
// What the controller's caches hold, Put puts there.
type Fake struct {
	// Answer says what a call is answered with; an error should be a Status error of apierrors. nil gives back the
	// object.
	Answer func(Call) (runtime.Object, error)

	mu    sync.Mutex
	calls []Call
}

// Deps returns what a controller needs to work on f at a fixed time. The recorder takes up to ten events.
func (f *Fake) Deps(t testing.TB, now time.Time) controller.Deps {
	t.Helper()
	s := scheme.New()
	srv := httptest.NewServer(f.handler(s))
	t.Cleanup(srv.Close)
	client, err := apiclient.New(&rest.Config{Host: srv.URL}, s)
	if err != nil {
		t.Fatal(err)
	}
	return controller.Deps{
		Client: client, Informers: controller.NewInformers(client), Events: record.NewFakeRecorder(10),
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	}
}

// Put makes objects what the controller finds in a cache.
func Put[T apiclient.Object](t testing.TB, i *controller.Informer[T], objects ...T) {
	t.Helper()
	for _, o := range objects {
		if err := i.Raw().GetIndexer().Add(o); err != nil {
			t.Fatal(err)
		}
	}
}

// Calls returns the requests so far.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Call(nil), f.calls...)
}

// Names returns the requests so far in short.
func (f *Fake) Names() []string {
	var out []string
	for _, c := range f.Calls() {
		out = append(out, c.Name())
	}
	return out
}

// Ending is the error with which the server refuses to create something in a namespace that is being deleted.
func Ending() error {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", nil)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

func (f *Fake) handler(s *runtime.Scheme) http.Handler {
	decoder := serializer.NewCodecFactory(s).UniversalDeserializer()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		call := Call{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Body: body}
		if err == nil && len(body) > 0 && r.Method != http.MethodPatch {
			call.Object, _, err = decoder.Decode(body, nil, nil)
		}
		if err != nil {
			send(w, s, nil, apierrors.NewBadRequest(err.Error()))
			return
		}
		f.mu.Lock()
		f.calls = append(f.calls, call)
		f.mu.Unlock()
		out := call.Object
		if f.Answer != nil {
			out, err = f.Answer(call)
		}
		send(w, s, out, err)
	})
}

// send answers with obj, or with err as a Status.
func send(w http.ResponseWriter, s *runtime.Scheme, obj runtime.Object, err error) {
	code := http.StatusOK
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			status = apierrors.NewInternalError(err)
		}
		st := status.Status()
		obj, code = &st, int(st.Code)
	}
	if obj != nil {
		if kinds, _, err := s.ObjectKinds(obj); err == nil {
			obj = obj.DeepCopyObject()
			obj.GetObjectKind().SetGroupVersionKind(kinds[0])
		}
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	// A client that is gone reads no answer.
	_ = json.NewEncoder(w).Encode(obj)
}
