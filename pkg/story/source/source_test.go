package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/traces"
	"bonsai/pkg/story/storytest"
)

// api answers requests: a string is JSON, an error the server's refusal, nil that there is nothing.
type api struct {
	answers map[string]any
	lists   func(path string, query url.Values) (any, bool)
	asked   atomic.Int32
}

func (a *api) Do(_ context.Context, verb string, path []string, query url.Values, _ []byte,
	_ ...string) ([]byte, error) {
	a.asked.Add(1)
	p := strings.Join(path, "/")
	if verb != http.MethodGet {
		return nil, fmt.Errorf("%s %s: it writes", verb, p)
	}
	if a.lists != nil {
		if answer, ok := a.lists(p, query); ok {
			return json.Marshal(answer)
		}
	}
	switch answer := a.answers[p].(type) {
	case nil:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, p)
	case error:
		return nil, answer
	case string:
		return []byte(answer), nil
	default:
		return json.Marshal(answer)
	}
}

const served = "/apis/traces.bonsai.io/v1alpha1"

func now() time.Time { return storytest.Zero().Add(time.Hour) }

// lastHour is the window of all that storytest has.
func lastHour() Window { return Window{From: now().Add(-2 * time.Hour), To: now()} }

// TestInferred: why a server has no spans, and which errors are no answer to that.
func TestInferred(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer any
		want   string
		fails  bool
	}{
		"served": {"{}", "", false},
		"absent": {nil, "no traces.bonsai.io on this server", false},
		"forbidden": {apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")),
			"you may not use traces.bonsai.io", false},
		"unavailable": {apierrors.NewServiceUnavailable("no endpoints"), "traces.bonsai.io does not answer", false},
		"who":         {apierrors.NewUnauthorized("who"), "", true},
		"no server":   {errors.New("connection refused"), "", true},
	} {
		a := &api{answers: map[string]any{served: test.answer}}
		r := New(a, now())
		for range 2 { // it is asked once
			why, guess, err := r.Inferred(t.Context())
			if !strings.HasPrefix(why, test.want) || guess != (test.want != "") || (err != nil) != test.fails {
				t.Errorf("%s: %q, %t, %v", name, why, guess, err)
			}
		}
		if n := a.asked.Load(); n != 1 && !test.fails {
			t.Errorf("%s: asked %d times", name, n)
		}
	}
}

// endless answers every list with a page and a token for the next one.
func endless(item func(n int) any) func(string, url.Values) (any, bool) {
	var n atomic.Int32
	return func(path string, query url.Values) (any, bool) {
		limit, err := strconv.Atoi(query.Get("limit"))
		if err != nil {
			return nil, false
		}
		items := make([]any, limit)
		for i := range items {
			items[i] = item(int(n.Add(1)))
		}
		return map[string]any{"metadata": map[string]any{"continue": "more"}, "items": items}, true
	}
}

// TestBounds: lists that never end are read up to a bound, which is said.
func TestBounds(t *testing.T) {
	t.Parallel()
	t.Run("pods", func(t *testing.T) {
		t.Parallel()
		a := &api{lists: endless(func(n int) any {
			p := corev1.Pod{}
			p.Name, p.UID = fmt.Sprint(n), types.UID(fmt.Sprint(n))
			p.CreationTimestamp = metav1.NewTime(storytest.Zero())
			return p
		})}
		pods, notes, err := New(a, now()).Namespace(t.Context(), "ns", lastHour(), nil)
		if err != nil || len(pods) != pageSize*maxPages || a.asked.Load() != 1+2*maxPages {
			t.Errorf("%d pods by %d requests, %v", len(pods), a.asked.Load(), err)
		}
		all := strings.Join(notes, "\n")
		if !strings.Contains(all, "only the first 5000 pods were read") || len(notes) > 20 {
			t.Errorf("notes: %s", all)
		}
	})
	t.Run("traces", func(t *testing.T) {
		t.Parallel()
		trace := *storytest.Pods(1, 0)[0]
		a := &api{answers: map[string]any{served: "{}", served + "/namespaces/default/traces/" + trace.Name: trace}}
		short := trace
		short.Spans = nil
		a.lists = endless(func(int) any { return short })
		pods, notes, err := New(a, now()).Namespace(t.Context(), "default", lastHour(), nil)
		if err != nil || len(pods) != MaxStories || a.asked.Load() != 1+maxPages+MaxStories+maxPages {
			t.Errorf("%d pods by %d requests, %v", len(pods), a.asked.Load(), err)
		}
		if all := strings.Join(notes, "\n"); !strings.Contains(all, "only the newest 500 of 20000 pods were read") ||
			!strings.Contains(all, "there are more than 5000 pods") {
			t.Errorf("notes: %s", all)
		}
	})
}

// TestTraceGone: a trace that the store drops between the list and the read is left out; any other error is one.
func TestTraceGone(t *testing.T) {
	t.Parallel()
	all := storytest.Pods(3, 0)
	list := traces.TraceList{Items: []traces.Trace{*all[0], *all[1], *all[2]}}
	const path = served + "/namespaces/default/traces"
	a := &api{answers: map[string]any{served: "{}", path: list, path + "/" + all[0].Name: all[0],
		path + "/" + all[2].Name: all[2], "/api/v1/namespaces/default/pods": "{}"}}
	pods, _, err := New(a, now()).Namespace(t.Context(), "default", lastHour(), nil)
	if err != nil || len(pods) != 2 {
		t.Errorf("%d pods, %v", len(pods), err)
	}
	a.answers[path+"/"+all[1].Name] = errors.New("connection reset")
	if _, _, err = New(a, now()).Namespace(t.Context(), "default", lastHour(), nil); err == nil {
		t.Error("an error was swallowed")
	}
}

// TestGone: a pod that the store knows is gone if the kubelet recorded that, or if the server has none of its UID. Of
// one that is there the server says whether it is Ready now.
func TestGone(t *testing.T) {
	t.Parallel()
	const (
		path = served + "/namespaces/default/traces"
		pods = "/api/v1/namespaces/default/pods"
	)
	deleted, forced, there := storytest.Pod(), storytest.Pods(2, 0)[0], storytest.Pods(2, 0)[1]
	alive := metav1.PartialObjectMetadata{}
	alive.UID = there.Object.UID
	for name, test := range map[string]struct {
		pods any
		gone string
		note bool
	}{
		"listed": {metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{alive}},
			forced.Object.Name + " " + deleted.Object.Name, false},
		"forbidden": {apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")), deleted.Object.Name, true},
	} {
		a := &api{answers: map[string]any{served: "{}", pods: test.pods,
			path:                      traces.TraceList{Items: []traces.Trace{*deleted, *forced, *there}},
			path + "/" + deleted.Name: deleted, path + "/" + forced.Name: forced, path + "/" + there.Name: there}}
		all, notes, err := New(a, now()).Namespace(t.Context(), "default", lastHour(), nil)
		var gone []string
		for _, s := range all {
			if s.Gone {
				gone = append(gone, s.Object.Name)
			}
		}
		slices.Sort(gone)
		if strings.Join(gone, " ") != test.gone || err != nil ||
			strings.Contains(strings.Join(notes, " "), "you may not list pods") != test.note {
			t.Errorf("%s: gone are %q, notes %q, %v", name, gone, notes, err)
		}
	}
	crashing := corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: there.Object.UID}}
	crashing.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	crash := &api{answers: map[string]any{served: "{}", pods: corev1.PodList{Items: []corev1.Pod{crashing}},
		path: traces.TraceList{Items: []traces.Trace{*there}}, path + "/" + there.Name: there}}
	all, _, err := New(crash, now()).Namespace(t.Context(), "default", lastHour(), nil)
	if err != nil || len(all) != 1 || !all[0].Lapsed() || all[0].Now.Why != "CrashLoopBackOff" {
		t.Errorf("a pod that was Ready and crashes: %+v, %v", all, err)
	}
	a := &api{answers: map[string]any{served: "{}", pods: errors.New("connection reset"),
		path: traces.TraceList{Items: []traces.Trace{*there}}, path + "/" + there.Name: there}}
	if _, _, err := New(a, now()).Namespace(t.Context(), "default", lastHour(), nil); err == nil {
		t.Error("an error was swallowed")
	}
}

// TestNoTraces: a store that has no traces of a time is no reason to show nothing, unless it has some of the other time
// that is compared.
func TestNoTraces(t *testing.T) {
	t.Parallel()
	p := corev1.Pod{}
	p.Name, p.UID, p.CreationTimestamp = "p", "u", metav1.NewTime(storytest.Zero())
	trace := storytest.Pods(1, 0)[0]
	const path = served + "/namespaces/default/traces"
	a := &api{answers: map[string]any{served: "{}", path: traces.TraceList{},
		"/api/v1/namespaces/default/pods":   corev1.PodList{Items: []corev1.Pod{p}},
		"/api/v1/namespaces/default/events": "{}"}}
	pods, notes, err := New(a, now()).Namespace(t.Context(), "default", lastHour(), nil)
	if err != nil || len(pods) != 1 || !strings.HasPrefix(notes[0], "traces.bonsai.io has no traces of these pods") {
		t.Errorf("%d pods, notes %q, %v", len(pods), notes, err)
	}
	a.answers[path], a.answers[path+"/"+trace.Name] = traces.TraceList{Items: []traces.Trace{*trace}}, trace
	r := New(a, now())
	earlier := Window{From: lastHour().From.AddDate(0, 0, -1), To: lastHour().To.AddDate(0, 0, -1)}
	for _, w := range []Window{lastHour(), earlier} {
		if pods, _, err = r.Namespace(t.Context(), "default", w, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(pods) != 0 {
		t.Errorf("%d pods of the earlier time, although it has no traces and the later one has", len(pods))
	}
}

// TestRollout: which pods of a workload count.
func TestRollout(t *testing.T) {
	t.Parallel()
	pod := func(name, owner, revision string) corev1.Pod {
		p := corev1.Pod{}
		p.Name, p.UID, p.CreationTimestamp = name, types.UID(name), metav1.NewTime(storytest.Zero())
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "X", Name: "x", UID: types.UID(owner),
			Controller: new(true)}}
		p.Labels = map[string]string{"controller-revision-hash": revision}
		return p
	}
	pods := corev1.PodList{Items: []corev1.Pod{pod("a", "u", "1"), pod("b", "u", "2"), pod("c", "other", "2")}}
	const own = `{"metadata":{"name":"x","namespace":"ns","uid":"u"},"spec":{"selector":{"matchLabels":{"a":"b"}}}%s}`
	a := &api{answers: map[string]any{
		"/apis/apps/v1/namespaces/ns/statefulsets/x": fmt.Sprintf(own, `,"status":{"updateRevision":"2"}`),
		"/apis/apps/v1/namespaces/ns/daemonsets/x":   fmt.Sprintf(own, ""),
		"/apis/batch/v1/namespaces/ns/jobs/x":        fmt.Sprintf(own, ""),
		"/apis/apps/v1/namespaces/ns/deployments/x":  fmt.Sprintf(own, ""),
		"/apis/apps/v1/namespaces/ns/replicasets":    "{}",
		"/api/v1/namespaces/ns/pods":                 pods,
		"/api/v1/namespaces/ns/events":               "{}",
	}}
	for kind, want := range map[string]string{"StatefulSet": "b", "DaemonSet": "a b", "Job": "a b", "Deployment": ""} {
		_, all, err := New(a, now()).Rollout(t.Context(), kind, "ns", "x")
		var got []string
		for _, s := range all {
			got = append(got, s.Object.Name)
		}
		if strings.Join(got, " ") != want || err != nil {
			t.Errorf("%s: %q, %v", kind, got, err)
		}
	}
	if _, _, err := New(a, now()).Rollout(t.Context(), "Job", "ns", "absent"); !apierrors.IsNotFound(err) {
		t.Errorf("an absent workload: %v", err)
	}
}

// TestBroken: answers that are no JSON say which they are.
func TestBroken(t *testing.T) {
	t.Parallel()
	a := &api{answers: map[string]any{"/api/v1/namespaces/ns/pods/p": "<html>", "/api/v1/namespaces/ns/pods": "["}}
	if _, err := New(a, now()).Pod(t.Context(), "ns", "p"); err == nil || !strings.Contains(err.Error(), "decode p") {
		t.Errorf("%v", err)
	}
	if _, _, err := New(a, now()).Namespace(t.Context(), "ns", lastHour(), nil); err == nil ||
		!strings.Contains(err.Error(), "decode the list of pods") {
		t.Errorf("%v", err)
	}
}

// TestCompleted: the story of a pod with a trace has the messages of its failures. It says so if the caller may not
// list events.
func TestCompleted(t *testing.T) {
	t.Parallel()
	trace := storytest.Failing()
	trace.Spans[3].Error = "ErrImagePull"
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop-0", Namespace: "default", UID: trace.Object.UID,
		CreationTimestamp: metav1.NewTime(storytest.Zero())}}
	e := corev1.Event{Reason: "Failed", Message: "Failed to pull image: not found",
		FirstTimestamp: metav1.NewTime(storytest.Zero().Add(5 * time.Second)),
		InvolvedObject: corev1.ObjectReference{UID: p.UID, FieldPath: "spec.containers{shop}"}}
	const events = "/api/v1/namespaces/default/events"
	a := &api{answers: map[string]any{served: "{}", "/api/v1/namespaces/default/pods/shop-0": p,
		served + "/namespaces/default/traces/" + string(p.UID): trace,
		events: corev1.EventList{Items: []corev1.Event{e}}}}
	failure := func() (string, []string) {
		s, err := New(a, now()).Pod(t.Context(), "default", "shop-0")
		if err != nil {
			t.Fatal(err)
		}
		steps := s.Phases[0].Steps
		return steps[len(steps)-1].Error, s.Notes
	}
	const note = "the pod is not Ready: kubectl why -n default pod/shop-0 says why"
	if got, notes := failure(); got != "ErrImagePull: Failed to pull image: not found" ||
		!slices.Equal(notes, []string{note}) {
		t.Errorf("%q, notes %q", got, notes)
	}
	a.answers[events] = apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	if got, notes := failure(); got != "ErrImagePull" || !slices.Equal(notes, []string{noMessages, note}) {
		t.Errorf("without events: %q, notes %q", got, notes)
	}
}

// TestWaited: what a workload and its events tell of the time without pods.
func TestWaited(t *testing.T) {
	t.Parallel()
	const second = time.Second
	after := func(d time.Duration) string { return storytest.Zero().Add(d).Format(time.RFC3339) }
	failed := corev1.Event{Reason: "FailedCreate", Message: "no account",
		FirstTimestamp: metav1.NewTime(storytest.Zero().Add(5 * second)),
		InvolvedObject: corev1.ObjectReference{UID: "u"}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p",
		CreationTimestamp: metav1.NewTime(storytest.Zero().Add(140 * second)),
		OwnerReferences:   []metav1.OwnerReference{{UID: "u", Controller: new(true)}}}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(storytest.Zero().Add(141 * second))}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	for name, test := range map[string]struct {
		kind, status string
		pods         []corev1.Pod
		events       any
		want         string // the headline
		failure      string // of the first step
	}{
		"a finished Job": {"Job", `{"startTime":"` + after(0) + `","completionTime":"` + after(143*second) + `"}`,
			[]corev1.Pod{pod}, corev1.EventList{Items: []corev1.Event{failed}}, "finished after 2m23s", "no account"},
		"a failed Job": {"Job", `{"conditions":[{"type":"Failed","status":"True","reason":"DeadlineExceeded",
			"lastTransitionTime":"` + after(60*second) + `"}]}`, nil, "{}", "failed after 1m00s; DeadlineExceeded", ""},
		"a Job that was suspended": {"Job", `{"startTime":"` + after(30*time.Minute) + `"}`, nil, "{}",
			"not finished after 30m00s: no pod of it is there", ""},
		"a Job whose events may not be listed": {"Job", "{}", nil, forbidden,
			"not finished after 1h00m: no pod of it is there", ""},
		"pods that could not be made": {"StatefulSet", "{}", []corev1.Pod{pod},
			corev1.EventList{Items: []corev1.Event{failed}}, "not Ready for 59m55s: Running; last step after 2m16s",
			"no account"},
		"pods of an old set": {"StatefulSet", "{}", []corev1.Pod{pod}, "{}",
			"not Ready for 57m40s: Running; last step after 1s", ""},
	} {
		path := workloads[strings.ToLower(test.kind)].path("ns")
		a := &api{answers: map[string]any{strings.Join(path, "/") + "/x": fmt.Sprintf(`{"metadata":{"name":"x",
			"namespace":"ns","uid":"u","creationTimestamp":%q},"status":%s}`, after(0), test.status),
			"/api/v1/namespaces/ns/pods":   corev1.PodList{Items: test.pods},
			"/api/v1/namespaces/ns/events": test.events}}
		s, _, err := New(a, now()).Rollout(t.Context(), test.kind, "ns", "x")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got, failure string
		if len(s.Phases) > 0 {
			got = s.Phases[0].Headline(s.Resolution)
			if steps := s.Phases[0].Steps; len(steps) > 0 {
				failure = steps[0].Error
			}
		}
		if got != test.want || failure != test.failure {
			t.Errorf("%s: %s, %q, want %s, %q; notes %q", name, got, failure, test.want, test.failure, s.Notes)
		}
		if strings.Contains(strings.Join(s.Notes, " "), "you may not list events") != (test.events == any(forbidden)) {
			t.Errorf("%s: notes %q", name, s.Notes)
		}
	}
}
