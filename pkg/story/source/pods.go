package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/api/traces"
	"bonsai/pkg/story"
	"bonsai/pkg/story/inferred"
)

// Pod returns the story of a pod. The store may know one that is gone; then its newest trace of that name counts.
func (r *Reader) Pod(ctx context.Context, namespace, name string) (*story.Story, error) {
	why, guess, err := r.Inferred(ctx)
	if err != nil {
		return nil, err
	}
	p := &corev1.Pod{}
	err = r.read(ctx, p, "/api/v1", "namespaces", namespace, "pods", name)
	if apierrors.IsNotFound(err) && !guess {
		return r.gone(ctx, namespace, name, err)
	}
	if err != nil {
		return nil, err
	}
	var t *traces.Trace
	if !guess {
		if t, err = r.trace(ctx, namespace, string(p.UID)); err != nil {
			if why = notKept(err); why == "" {
				return nil, err
			}
			t = nil
		}
	}
	events, err := r.eventsOf(ctx, "Pod", &p.ObjectMeta)
	forbidden := apierrors.IsForbidden(err)
	if err != nil && !forbidden {
		return nil, err
	}
	var s *story.Story
	if t != nil {
		s = r.completed(t, p, events)
		if forbidden {
			s.Notes = append(s.Notes, noMessages)
		}
	} else {
		of, notes := inferred.Pod(p, events, r.owner(ctx, p))
		if forbidden {
			notes = []string{"you may not list events: image pulls and failures are unknown"}
		}
		s = r.guessedPod(of, p, append([]string{why, missing}, notes...)...)
	}
	if s.NotReady() {
		s.Notes = append(s.Notes, "the pod is not Ready: "+s.AskWhy()+" says why")
	}
	return s, nil
}

// noMessages is what a story lacks whose reader may not list events.
const noMessages = "you may not list events: the messages of failures and probes that fail are unknown"

// completed makes the story of a pod's trace from the store, with what its object and its events add.
func (r *Reader) completed(t *traces.Trace, p *corev1.Pod, events []corev1.Event) *story.Story {
	s := recorded(inferred.Complete(t, p, events, r.now))
	s.SetNow(inferred.Now(p, r.now))
	return s
}

// guessedPod makes the story of a pod's inferred trace.
func (r *Reader) guessedPod(t *traces.Trace, p *corev1.Pod, notes ...string) *story.Story {
	s := guessed(t, notes...)
	s.SetNow(inferred.Now(p, r.now))
	return s
}

// missing is what no object of Kubernetes keeps.
const missing = "missing: the request, the scheduler's queue and plug-ins, volumes and CNI one by one, hooks, each probe, endpoints in the kernel"

// notKept says why a trace that could not be read is inferred, "" if the error is another one.
func notKept(err error) string {
	switch {
	case errors.Is(err, errNoTrace):
		return "traces.bonsai.io has no trace of this object, which may be older than what it keeps: built from " +
			fromState + roughly
	case apierrors.IsForbidden(err):
		return "you may not read traces.bonsai.io: built from " + fromState + roughly
	}
	return ""
}

// gone returns the story of a pod that is no more; notFound if the store does not know it either.
func (r *Reader) gone(ctx context.Context, namespace, name string, notFound error) (*story.Story, error) {
	var all []traces.Trace
	query := selector("object.kind", "Pod", "object.name", name)
	if _, err := r.list(ctx, tracePath(namespace), query, items(&all)); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, notFound
	}
	newest := slices.MaxFunc(all, func(a, b traces.Trace) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	t, err := r.trace(ctx, namespace, newest.Name)
	if errors.Is(err, errNoTrace) {
		return nil, notFound
	}
	if err != nil {
		return nil, err
	}
	s := recorded(t)
	s.Gone = true
	s.Notes = append(s.Notes, "the pod is gone: this is what traces.bonsai.io kept")
	return s, nil
}

func selector(pairs ...string) url.Values {
	set := fields.Set{}
	for i := 0; i+1 < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return url.Values{"fieldSelector": {set.AsSelector().String()}}
}

// eventsOf reads the events of an object.
func (r *Reader) eventsOf(ctx context.Context, kind string, o *metav1.ObjectMeta) ([]corev1.Event, error) {
	var all []corev1.Event
	_, err := r.list(ctx, []string{"/api/v1", "namespaces", o.Namespace, "events"},
		selector("involvedObject.kind", kind, "involvedObject.name", o.Name), items(&all))
	return slices.DeleteFunc(all, func(e corev1.Event) bool {
		return e.InvolvedObject.UID != "" && e.InvolvedObject.UID != o.UID
	}), err
}

// owner reads the controller of a pod. Its time is no more than a help: whatever keeps it from being read, it is then
// unknown.
func (r *Reader) owner(ctx context.Context, p *corev1.Pod) *inferred.Owner {
	c := metav1.GetControllerOfNoCopy(p)
	if c == nil {
		return nil
	}
	w := workloads[strings.ToLower(c.Kind)]
	if w.resource == "" {
		return nil
	}
	o := &metav1.PartialObjectMetadata{}
	if r.read(ctx, o, append(w.path(p.Namespace), c.Name)...) != nil || o.UID != c.UID {
		return nil
	}
	return &inferred.Owner{Kind: c.Kind, Name: c.Name, Created: o.CreationTimestamp.Time}
}

// Window is a time in which objects were created.
type Window struct{ From, To time.Time }

func (w Window) has(t time.Time) bool { return !t.Before(w.From) && !t.After(w.To) }

// Namespace returns the stories of the pods that were created within w in a namespace, or with "" in all, and notes
// about what they lack. kept says which pods count, nil for all.
func (r *Reader) Namespace(ctx context.Context, namespace string, w Window,
	kept func(pod string, owner *traces.Object) bool) ([]*story.Story, []string, error) {
	why, guess, err := r.Inferred(ctx)
	if err != nil {
		return nil, nil, err
	}
	if kept == nil {
		kept = func(string, *traces.Object) bool { return true }
	}
	if !guess {
		all, notes, err := r.traced(ctx, namespace, w, kept)
		r.found = r.found || len(all) > 0
		switch {
		case apierrors.IsForbidden(err):
			why = notKept(err)
		case err != nil || r.found: // two times are compared by the same source
			return all, notes, err
		default:
			why = "traces.bonsai.io has no traces of these pods: built from " + fromState + roughly
		}
	}
	var pods []corev1.Pod
	path := []string{"/api/v1", "namespaces", namespace, "pods"}
	if namespace == "" {
		path = []string{"/api/v1", "pods"}
	}
	more, err := r.list(ctx, path, nil, items(&pods))
	if err != nil {
		return nil, nil, err
	}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		return !w.has(p.CreationTimestamp.Time) || !kept(p.Name, ownerOf(&p))
	})
	notes := []string{why, "pods that are gone are not counted"}
	if more {
		notes = append(notes, fmt.Sprintf("only the first %d pods were read", pageSize*maxPages))
	}
	out, more2, err := r.infer(ctx, namespace, pods)
	return out, append(notes, more2...), err
}

func ownerOf(p *corev1.Pod) *traces.Object {
	c := metav1.GetControllerOfNoCopy(p)
	if c == nil {
		return nil
	}
	return &traces.Object{Kind: c.Kind, Namespace: p.Namespace, Name: c.Name, UID: c.UID}
}

// infer makes the stories of pods of one namespace, or of all.
func (r *Reader) infer(ctx context.Context, namespace string, pods []corev1.Pod) (out []*story.Story, notes []string,
	err error) {
	by, notes, err := r.eventsOfPods(ctx, namespace, "you may not list events: image pulls and failures are unknown")
	if err != nil {
		return nil, nil, err
	}
	for i := range pods {
		t, of := inferred.Pod(&pods[i], by[pods[i].UID], nil)
		out = append(out, r.guessedPod(t, &pods[i]))
		notes = append(notes, of...)
	}
	return out, brief(notes), nil
}

// eventsOfPods reads the events of all pods of a namespace, or with "" of all. forbidden is the note for a caller who
// may not.
func (r *Reader) eventsOfPods(ctx context.Context, namespace, forbidden string) (by map[types.UID][]corev1.Event,
	notes []string, err error) {
	by = map[types.UID][]corev1.Event{}
	var events []corev1.Event
	path := []string{"/api/v1", "namespaces", namespace, "events"}
	if namespace == "" {
		path = []string{"/api/v1", "events"}
	}
	more, err := r.list(ctx, path, selector("involvedObject.kind", "Pod"), items(&events))
	switch {
	case apierrors.IsForbidden(err):
		notes = append(notes, forbidden)
	case err != nil:
		return nil, nil, err
	case more:
		notes = append(notes, fmt.Sprintf("only the first %d events were read", pageSize*maxPages))
	}
	for _, e := range events {
		by[e.InvolvedObject.UID] = append(by[e.InvolvedObject.UID], e)
	}
	return by, notes, nil
}

// maxNotes bounds the notes about single pods.
const maxNotes = 8

func brief(notes []string) []string {
	if n := len(notes) - maxNotes; n > 0 {
		return append(notes[:maxNotes:maxNotes], fmt.Sprintf("%d more notes of this kind", n))
	}
	return notes
}

// skew is by how much the clock of the store may be behind ours.
const skew = time.Minute

// traced reads the traces of the pods that were created within w, the newest first if they are too many.
func (r *Reader) traced(ctx context.Context, namespace string, w Window,
	kept func(string, *traces.Object) bool) ([]*story.Story, []string, error) {
	path := tracePath(namespace)
	if namespace == "" {
		path = append(tracePath("")[:3:3], traces.Resource)
	}
	query := selector("object.kind", "Pod")
	// Since when spans count, by the store's clock, which may be a little behind ours. What is older is left out below.
	query.Set("since", (r.now.Sub(w.From) + skew).Round(time.Second).String())
	query.Set("limit", fmt.Sprint(tracePage))
	var all []traces.Trace
	more, err := r.list(ctx, path, query, items(&all))
	if err != nil {
		return nil, nil, err
	}
	var notes []string
	if more {
		notes = append(notes, fmt.Sprintf("only the first %d traces were looked at", tracePage*maxPages))
	}
	all = slices.DeleteFunc(all, func(t traces.Trace) bool {
		return !w.has(t.CreationTimestamp.Time) || !kept(t.Object.Name, t.Owner)
	})
	slices.SortStableFunc(all, func(a, b traces.Trace) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	if len(all) > MaxStories {
		notes = append(notes, fmt.Sprintf("only the newest %d of %d pods were read", MaxStories, len(all)))
		all = all[:MaxStories]
	}
	out := make([]*story.Story, len(all))
	g, reading := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i := range all {
		g.Go(func() error {
			t, err := r.trace(reading, all[i].Namespace, all[i].Name)
			if errors.Is(err, errNoTrace) {
				return nil // dropped meanwhile, for newer ones
			}
			if err == nil {
				out[i] = recorded(t)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	out = slices.DeleteFunc(out, func(s *story.Story) bool { return s == nil })
	note, err := r.present(ctx, namespace, out)
	if note != "" {
		notes = append(notes, note)
	}
	return out, notes, err
}

// present adds to the stories of pods how these are now, and which are no longer there. That the kubelet deleted an
// object is recorded, but a finalizer may hold it; and the kubelet does not know of pods that were deleted by force or
// before they had a node. So the server is asked. If it does not tell, note says so, and what is recorded counts.
func (r *Reader) present(ctx context.Context, namespace string, of []*story.Story) (note string, err error) {
	if len(of) == 0 {
		return "", nil
	}
	path := []string{"/api/v1", "namespaces", namespace, "pods"}
	if namespace == "" {
		path = []string{"/api/v1", "pods"}
	}
	asked := make(map[types.UID]*story.Story, len(of))
	for _, s := range of {
		asked[s.Object.UID] = s
	}
	there := map[types.UID]story.Now{}
	more, err := r.list(ctx, path, nil, func(raw []byte) (metav1.ListMeta, error) { // of most pods nothing is kept
		var pods []corev1.Pod
		meta, err := items(&pods)(raw)
		for i := range pods {
			if asked[pods[i].UID] != nil {
				there[pods[i].UID] = inferred.Now(&pods[i], r.now)
			}
		}
		return meta, err
	})
	switch {
	case apierrors.IsForbidden(err):
		return "you may not list pods: some of those that are counted may be gone, or not Ready now", nil
	case err != nil:
		return "", err
	case more:
		note = fmt.Sprintf("there are more than %d pods: some of those that are counted may be gone, or not Ready now",
			pageSize*maxPages)
	}
	for uid, s := range asked {
		if now, ok := there[uid]; ok {
			s.SetNow(now)
		} else if !more {
			s.Gone = true
		}
	}
	return note, nil
}
