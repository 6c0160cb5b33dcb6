package write

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"bonsai/pkg/apiclient"
)

func newWriter(t *testing.T, h http.HandlerFunc) *Writer {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	s, err := apiclient.NewScheme(corev1.AddToScheme, eventsv1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	c, err := apiclient.New(&rest.Config{Host: srv.URL}, s)
	if err != nil {
		t.Fatal(err)
	}
	return New(c)
}

// server notes requests and answers each with a code by its method, 200 if none is given.
type server struct {
	codes map[string]int
	mu    sync.Mutex
	log   []string
	last  string // body
}

func (s *server) handle(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.last = append(s.log, r.Method+" "+r.URL.Path), string(body)
	code := s.codes[r.Method]
	if err != nil || code == 0 {
		code = http.StatusOK
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if code == http.StatusOK {
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		return
	}
	reasons := map[int]metav1.StatusReason{404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict,
		403: metav1.StatusReasonForbidden}
	_ = json.NewEncoder(w).Encode(
		metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code),
			Reason: reasons[code], Message: "so it is"})
}

func (s *server) requests() ([]string, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log), s.last
}

var victim = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}}

func TestPatchStatus(t *testing.T) {
	t.Parallel()
	condition := &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}
	for _, c := range []struct {
		name      string
		condition *corev1.PodCondition
		nominated *string
		want      string
	}{
		{"condition alone leaves the nomination", condition, nil,
			`{"metadata":{"uid":"u"},"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":null,"reason":"Unschedulable","status":"False","type":"PodScheduled"}]}}`},
		{"nominated", nil, new("n1"), `{"metadata":{"uid":"u"},"status":{"nominatedNodeName":"n1"}}`},
		{"nomination taken back", nil, new(""), `{"metadata":{"uid":"u"},"status":{"nominatedNodeName":null}}`},
	} {
		s := &server{}
		if err := newWriter(t, s.handle).PatchStatus(t.Context(), victim, c.condition, c.nominated); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		log, body := s.requests()
		var got any
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%s: %v in %q", c.name, err, body)
		}
		sorted, err := json.Marshal(got)
		if err != nil || string(sorted) != c.want ||
			!slices.Equal(log, []string{"PATCH /api/v1/namespaces/ns/pods/p/status"}) {
			t.Errorf("%s: %v with %s, want %s", c.name, log, sorted, c.want)
		}
	}
}

// TestPreempt: a victim is marked, then deleted; one that is gone, or whose name another has, needs neither.
func TestPreempt(t *testing.T) {
	t.Parallel()
	const mark, remove = "PATCH /api/v1/namespaces/ns/pods/p/status", "DELETE /api/v1/namespaces/ns/pods/p"
	for _, c := range []struct {
		name  string
		codes map[string]int
		want  []string
		fails bool
	}{
		{"there", nil, []string{mark, remove}, false},
		{"gone", map[string]int{"PATCH": 404}, []string{mark}, false},
		{"another of its name", map[string]int{"PATCH": 409}, []string{mark}, false},
		{"may not be marked", map[string]int{"PATCH": 403}, []string{mark}, true},
		{"gone after the mark", map[string]int{"DELETE": 404}, []string{mark, remove}, false},
		{"another of its name after the mark", map[string]int{"DELETE": 409}, []string{mark, remove}, false},
		{"may not be deleted", map[string]int{"DELETE": 403}, []string{mark, remove}, true},
	} {
		s := &server{codes: c.codes}
		err := newWriter(t, s.handle).Preempt(t.Context(), victim, &corev1.PodCondition{Type: corev1.DisruptionTarget})
		log, body := s.requests()
		if (err != nil) != c.fails || !slices.Equal(log, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.name, log, err, c.want)
		}
		if c.fails && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "pod ns/p")) {
			t.Errorf("%s: %v should name the pod and keep the answer", c.name, err)
		}
		if len(log) < 2 {
			continue
		}
		var doc runtime.Unknown
		var o metav1.DeleteOptions
		if err := errors.Join(doc.Unmarshal([]byte(strings.TrimPrefix(body, "k8s\x00"))),
			o.Unmarshal(doc.Raw)); err != nil || o.Preconditions == nil || *o.Preconditions.UID != "u" {
			t.Errorf("%s: deleted with %+v, %v", c.name, o, err)
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	s := &server{}
	w := newWriter(t, s.handle)
	for _, f := range []func() error{
		func() error {
			return w.CreateEvent(t.Context(),
				&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e"}})
		},
		func() error { return w.PatchEvent(t.Context(), "ns", "e", &eventsv1.EventSeries{Count: 2}) },
	} {
		if err := f(); err != nil {
			t.Error(err)
		}
	}
	got, _ := s.requests()
	if want := []string{"POST /apis/events.k8s.io/v1/namespaces/ns/events",
		"PATCH /apis/events.k8s.io/v1/namespaces/ns/events/e"}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
}

func TestBindPostsABindingAsProtobuf(t *testing.T) {
	t.Parallel()
	w := newWriter(t, func(res http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if want := "/api/v1/namespaces/ns/pods/p/binding"; r.Method != "POST" || r.URL.Path != want {
			t.Errorf("%s %s, want POST %s", r.Method, r.URL.Path, want)
		}
		u, b := runtime.Unknown{}, corev1.Binding{}
		if len(body) < 4 || string(body[:4]) != "k8s\x00" || u.Unmarshal(body[4:]) != nil || b.Unmarshal(u.Raw) != nil {
			t.Fatalf("body %q is no protobuf object", body)
		}
		if u.Kind != "Binding" || u.APIVersion != "v1" || b.Target.Kind != "Node" || b.Target.Name != "n" ||
			b.UID != "u" {
			t.Errorf("posted %+v of %+v", b, u.TypeMeta)
		}
		res.WriteHeader(http.StatusCreated)
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}}
	if err := w.Bind(t.Context(), pod, "n"); err != nil {
		t.Fatal(err)
	}
}

func TestErrorsAreTheServersStatus(t *testing.T) {
	t.Parallel()
	w := newWriter(t, func(res http.ResponseWriter, _ *http.Request) {
		res.WriteHeader(http.StatusConflict)
		json.NewEncoder(res).Encode(
			metav1.Status{Status: "Failure", Reason: metav1.StatusReasonConflict, Code: 409, Message: "taken"})
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	if err := w.Bind(t.Context(), pod, "n"); !apierrors.IsConflict(err) {
		t.Errorf("Bind = %v, want a conflict", err)
	}
}
