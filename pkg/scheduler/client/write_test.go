package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

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
	reasons := map[int]metav1.StatusReason{404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict, 403: metav1.StatusReasonForbidden}
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reasons[code], Message: "so it is"})
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
		{"condition alone leaves the nomination", condition, nil, `{"metadata":{"uid":"u"},"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":null,"reason":"Unschedulable","status":"False","type":"PodScheduled"}]}}`},
		{"nominated", nil, new("n1"), `{"metadata":{"uid":"u"},"status":{"nominatedNodeName":"n1"}}`},
		{"nomination taken back", nil, new(""), `{"metadata":{"uid":"u"},"status":{"nominatedNodeName":null}}`},
	} {
		s := &server{}
		if err := newClient(t, s.handle).PatchStatus(t.Context(), victim, c.condition, c.nominated); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		log, body := s.requests()
		var got any
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%s: %v in %q", c.name, err, body)
		}
		sorted, err := json.Marshal(got)
		if err != nil || string(sorted) != c.want || !slices.Equal(log, []string{"PATCH /api/v1/namespaces/ns/pods/p/status"}) {
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
		err := newClient(t, s.handle).Preempt(t.Context(), victim, &corev1.PodCondition{Type: corev1.DisruptionTarget})
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
		if err := errors.Join(doc.Unmarshal([]byte(strings.TrimPrefix(body, magic))), o.Unmarshal(doc.Raw)); err != nil || o.Preconditions == nil || *o.Preconditions.UID != "u" {
			t.Errorf("%s: deleted with %+v, %v", c.name, o, err)
		}
	}
}

func TestBudgetsEventsAndLeases(t *testing.T) {
	t.Parallel()
	s := &server{codes: map[string]int{"GET": 404}}
	c := newClient(t, s.handle)
	if list, err := c.Budgets(t.Context()); list != nil || err != nil {
		t.Errorf("a server without budgets: %v, %v", list, err)
	}
	if _, err := c.Leases().Get(t.Context(), "kube-system", "kube-scheduler"); !apierrors.IsNotFound(err) {
		t.Errorf("a lease that is not there: %v; leader election must know", err)
	}
	for _, f := range []func() error{
		func() error {
			return c.CreateEvent(t.Context(), &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e"}})
		},
		func() error { return c.PatchEvent(t.Context(), "ns", "e", &eventsv1.EventSeries{Count: 2}) },
	} {
		if err := f(); err != nil {
			t.Error(err)
		}
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"}}
	_, _ = c.Leases().Create(t.Context(), lease) // the fake answers with no lease
	_, _ = c.Leases().Update(t.Context(), lease)
	got, _ := s.requests()
	want := []string{
		"GET /apis/policy/v1/poddisruptionbudgets", "GET /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler",
		"POST /apis/events.k8s.io/v1/namespaces/ns/events", "PATCH /apis/events.k8s.io/v1/namespaces/ns/events/e",
		"POST /apis/coordination.k8s.io/v1/namespaces/kube-system/leases", "PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler",
	}
	if !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if list, err := c.Budgets(gone); list != nil || err != nil {
		t.Errorf("at the end: %v, %v", list, err)
	}
}

// TestMirrorTellsPodsOfOneNameApart: a pod deleted and made anew between two looks is one that went and one that came.
func TestMirrorTellsPodsOfOneNameApart(t *testing.T) {
	t.Parallel()
	m := NewMirror(newClient(t, (&server{}).handle), slog.New(slog.DiscardHandler), corev1.SchemeGroupVersion.WithResource("pods"), &corev1.Pod{}, &corev1.PodList{}, "")
	m.Slim = func(p *corev1.Pod) { p.Annotations = nil }
	var changes []string
	m.Changed = func(old, new *corev1.Pod) {
		text := func(p *corev1.Pod) string {
			if p == nil {
				return "-"
			}
			return string(p.UID) + p.ResourceVersion
		}
		changes = append(changes, text(old)+">"+text(new))
	}
	pod := func(uid, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: types.UID(uid), ResourceVersion: version, Annotations: map[string]string{"a": "b"}}}
	}
	other := pod("o", "1")
	other.Name = "q"
	for _, err := range []error{
		m.Add(pod("a", "1")), m.Update(pod("a", "2")), m.Update(pod("b", "3")), m.Replace([]any{pod("c", "4"), other}, "4"), m.Delete(pod("c", "5")), m.Delete(pod("c", "6")), m.Resync(), m.Add("no pod"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{"->a1", "a1>a2", "a2>-", "->b3", "b3>-", "->c4", "->o1", "c4>-"}
	if !slices.Equal(changes, want) {
		t.Errorf("changes %q, want %q", changes, want)
	}
	if _, ok := m.Get("ns/p"); ok || m.Len() != 1 || !m.Synced() {
		t.Errorf("%d pods, synced %v", m.Len(), m.Synced())
	}
	seen := 0
	m.Each(func(p *corev1.Pod) bool { seen++; return p.Annotations != nil })
	if q, ok := m.Get("ns/q"); !ok || q.Annotations != nil || seen != 1 {
		t.Errorf("the other pod is %+v, seen %d times", q, seen)
	}
}
