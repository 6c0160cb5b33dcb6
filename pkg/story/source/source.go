// Package source reads the stories of a cluster's objects: from the spans that traces.bonsai.io keeps or, on any other
// server, inferred from the objects themselves. It only reads.
package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/traces"
	"bonsai/pkg/story"
	"bonsai/pkg/story/inferred"
)

// Bounds of what is read for one answer.
const (
	pageSize = 500
	// tracePage is the same for traces, whose list has a kilobyte for each, and which have to be looked at before the
	// newest are known.
	tracePage = 2000
	// maxPages bounds the pages of one list.
	maxPages = 10
	// MaxStories is how many objects are read one by one, the newest of them.
	MaxStories = 500
	// parallel is how many traces are read at a time. bonsai-traces lets one caller read as many.
	parallel = 4
)

// Getter sends requests to the API server. kubectl's client is one.
type Getter interface {
	Do(ctx context.Context, verb string, path []string, query url.Values, body []byte,
		headers ...string) ([]byte, error)
}

// Reader reads stories. Use it from one goroutine.
type Reader struct {
	api Getter
	now time.Time
	// origin is where stories come from, "" before the first question, and why says why they are inferred.
	origin, why string
	// found reports whether the store had traces of a namespace's pods.
	found bool
}

// New returns a Reader. now is when the question is asked.
func New(api Getter, now time.Time) *Reader { return &Reader{api: api, now: now} }

const (
	fromTraces = "traces.bonsai.io"
	fromState  = "conditions, container statuses, events, managedFields and owners"
	roughly    = ", most of which have whole seconds only"
)

// Inferred reports whether stories are inferred, and why in a sentence.
func (r *Reader) Inferred(ctx context.Context) (why string, inferred bool, err error) {
	if r.origin != "" {
		return r.why, r.origin == fromState, nil
	}
	built := ": built from " + fromState + roughly
	_, err = r.get(ctx, []string{"/apis", traces.GroupVersion.Group, traces.GroupVersion.Version}, nil)
	switch {
	case err == nil:
		r.origin = fromTraces
		return "", false, nil
	case apierrors.IsNotFound(err):
		r.why = "no traces.bonsai.io on this server" + built
	case apierrors.IsForbidden(err):
		r.why = "you may not use traces.bonsai.io" + built
	case apierrors.IsServiceUnavailable(err):
		r.why = "traces.bonsai.io does not answer" + built
	default:
		return "", false, err
	}
	r.origin = fromState
	return r.why, true, nil
}

func (r *Reader) get(ctx context.Context, path []string, query url.Values) ([]byte, error) {
	return r.api.Do(ctx, http.MethodGet, path, query, nil, "Accept", "application/json")
}

// read reads one object into out.
func (r *Reader) read(ctx context.Context, out any, path ...string) error {
	raw, err := r.get(ctx, path, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("decode %s from the server: %w", path[len(path)-1], err)
	}
	return nil
}

// list reads a collection page by page, up to the bound, and reports whether there was more. page decodes one page and
// returns its metadata.
func (r *Reader) list(ctx context.Context, path []string, query url.Values,
	page func([]byte) (metav1.ListMeta, error)) (more bool, err error) {
	if query == nil {
		query = url.Values{}
	}
	if !query.Has("limit") {
		query.Set("limit", fmt.Sprint(pageSize))
	}
	for range maxPages {
		raw, err := r.get(ctx, path, query)
		if err != nil {
			return false, err
		}
		meta, err := page(raw)
		if err != nil {
			return false, fmt.Errorf("decode the list of %s from the server: %w", path[len(path)-1], err)
		}
		if meta.Continue == "" {
			return false, nil
		}
		query.Set("continue", meta.Continue)
	}
	return true, nil
}

// items makes a page function for list that appends to all.
func items[T any](all *[]T) func([]byte) (metav1.ListMeta, error) {
	return func(raw []byte) (metav1.ListMeta, error) {
		var l struct {
			Metadata metav1.ListMeta `json:"metadata"`
			Items    []T             `json:"items"`
		}
		err := json.Unmarshal(raw, &l)
		*all = append(*all, l.Items...)
		return l.Metadata, err
	}
}

// tracePath is the collection of traces of a namespace, or with "" that of cluster-scoped objects.
func tracePath(namespace string) []string {
	p := []string{"/apis", traces.GroupVersion.Group, traces.GroupVersion.Version}
	if namespace == "" {
		return append(p, traces.ClusterResource)
	}
	return append(p, "namespaces", namespace, traces.Resource)
}

// errNoTrace is that the store does not know an object.
var errNoTrace = errors.New("the store has no trace of the object")

// trace reads one trace with its spans.
func (r *Reader) trace(ctx context.Context, namespace, uid string) (*traces.Trace, error) {
	if uid == "" {
		return nil, errNoTrace
	}
	t := &traces.Trace{}
	err := r.read(ctx, t, append(tracePath(namespace), uid)...)
	if apierrors.IsNotFound(err) {
		return nil, errNoTrace
	}
	return t, err
}

// recorded makes the story of a trace from the store.
func recorded(t *traces.Trace) *story.Story { return story.New(t, fromTraces, 0) }

// guessed makes the story of an inferred trace.
func guessed(t *traces.Trace, notes ...string) *story.Story {
	s := story.New(t, fromState, inferred.Resolution)
	s.Notes = append(s.Notes, notes...)
	return s
}
