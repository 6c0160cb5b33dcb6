package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"bonsai/api/traces"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/story"
	"bonsai/pkg/story/source"
)

// answer reads what was asked for and shows it.
func (q *question) answer(ctx context.Context) error {
	c, err := q.f.Resources()
	if err != nil {
		return err
	}
	namespace, _, err := q.f.Namespace()
	if err != nil {
		return err
	}
	now := q.out.now()
	r := source.New(c, now)
	if q.name == "" {
		if q.everywhere {
			namespace = ""
		} else if err := resource.CheckName(namespace); err != nil {
			return err
		}
		report, err := q.report(ctx, r, now, namespace, nil)
		if err != nil {
			return err
		}
		return q.showReport(report)
	}
	m, err := c.Mapping(q.kind)
	if err != nil {
		return err
	}
	if m.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	}
	path, err := resource.ObjectPath(m, namespace, q.name) // which refuses what would be another path
	if err != nil {
		return err
	}
	kind := m.GroupVersionKind.Kind
	switch builtIn := m.Resource.Group == "" || m.Resource.Group == "apps" || m.Resource.Group == "batch"; {
	case builtIn && source.Workload(kind):
		return q.workload(ctx, r, now, kind, namespace)
	case q.last != 0 || q.against != 0 || q.slowest != 0:
		return errors.New("--last, --slowest and --against are for many pods: name a workload, or no object")
	case kind == "Pod" && m.Resource.Group == "":
		s, err := r.Pod(ctx, namespace, q.name)
		if err != nil {
			return err
		}
		return q.showStory(s, nil)
	}
	s, err := r.Other(ctx, traces.Object{Group: m.Resource.Group, Resource: m.Resource.Resource, Kind: kind,
		Namespace: namespace, Name: q.name}, path)
	if err != nil {
		return err
	}
	return q.showStory(s, nil)
}

// workload shows the newest rollout of a workload with its pods, or those of a time.
func (q *question) workload(ctx context.Context, r *source.Reader, now time.Time, kind, namespace string) error {
	if q.last != 0 || q.against != 0 {
		report, err := q.report(ctx, r, now, namespace, func(_ string, owner *traces.Object) bool {
			return owns(kind, q.name, owner)
		})
		if err != nil {
			return err
		}
		return q.showReport(report)
	}
	whole, pods, err := r.Rollout(ctx, kind, namespace, q.name)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return q.showStory(whole, nil)
	}
	return q.showStory(whole, &story.Report{Title: "pods of " + whole.Title(), Resolution: whole.Resolution,
		Summary: story.Summarize(pods, q.slowest)})
}

// owns reports whether a pod's controller is the workload, or the ReplicaSet of the Deployment: its name is the
// Deployment's with a hash.
func owns(kind, name string, owner *traces.Object) bool {
	if owner == nil {
		return false
	}
	if kind == "Deployment" {
		hash, ok := strings.CutPrefix(owner.Name, name+"-")
		return ok && owner.Kind == "ReplicaSet" && !strings.Contains(hash, "-")
	}
	return owner.Kind == kind && owner.Name == name
}

// report sums up the pods of a namespace, or with "" of all, that were created within the time that was asked for.
func (q *question) report(ctx context.Context, r *source.Reader, now time.Time, namespace string,
	kept func(string, *traces.Object) bool) (*story.Report, error) {
	last := q.last
	if last == 0 {
		last = recent
	}
	w := source.Window{From: now.Add(-last), To: now}
	pods, notes, err := r.Namespace(ctx, namespace, w, kept)
	if err != nil {
		return nil, err
	}
	report := &story.Report{Title: q.about(namespace), From: w.From, To: w.To, Notes: notes,
		Summary: story.Summarize(pods, q.slowest), Resolution: resolution(pods)}
	if q.against == 0 {
		return report, nil
	}
	earlier := source.Window{From: w.From.Add(-q.against), To: w.To.Add(-q.against)}
	if earlier.To.After(w.From) {
		return nil, fmt.Errorf("--against must not be less than the %s of --last: the times would overlap", last)
	}
	then, notes, err := r.Namespace(ctx, namespace, earlier, kept)
	if err != nil {
		return nil, err
	}
	report.Earlier = &story.Interval{From: earlier.From, To: earlier.To}
	report.Changes = story.Compare(story.Summarize(then, 0), report.Summary)
	report.Resolution = max(report.Resolution, resolution(then))
	for _, n := range notes {
		report.Note(n)
	}
	if len(then) == 0 {
		report.Note("no pod of the earlier time is known")
	}
	return report, nil
}

func (q *question) about(namespace string) string {
	switch {
	case q.name != "":
		return "pods of " + strings.ToLower(q.kind) + " " + namespace + "/" + q.name
	case namespace == "":
		return "pods of all namespaces"
	}
	return "pods of namespace " + namespace
}

func resolution(pods []*story.Story) (out time.Duration) {
	for _, p := range pods {
		out = max(out, p.Resolution)
	}
	return out
}
