package source

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/traces"
	"bonsai/pkg/safetext"
	"bonsai/pkg/story"
	"bonsai/pkg/story/inferred"
)

// workload is a kind that has pods.
type workload struct{ group, version, resource, kind string }

// workloads are the kinds that have pods, by their names in lower case.
var workloads = map[string]workload{
	"replicationcontroller": {"", "v1", "replicationcontrollers", "ReplicationController"},
	"replicaset":            {"apps", "v1", "replicasets", "ReplicaSet"},
	"deployment":            {"apps", "v1", "deployments", "Deployment"},
	"statefulset":           {"apps", "v1", "statefulsets", "StatefulSet"},
	"daemonset":             {"apps", "v1", "daemonsets", "DaemonSet"},
	"job":                   {"batch", "v1", "jobs", "Job"},
}

func (w workload) path(namespace string) []string {
	p := []string{"/apis", w.group, w.version}
	if w.group == "" {
		p = []string{"/api", w.version}
	}
	return append(p, "namespaces", namespace, w.resource)
}

// Workload reports whether a kind is one whose pods Rollout reads.
func Workload(kind string) bool { return workloads[strings.ToLower(kind)].resource != "" }

// object is what is read of a workload.
type object struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector *metav1.LabelSelector `json:"selector"`
	} `json:"spec"`
	Status struct {
		UpdateRevision string `json:"updateRevision"`
		// Of Jobs.
		StartTime      *metav1.Time           `json:"startTime"`
		CompletionTime *metav1.Time           `json:"completionTime"`
		Conditions     []batchv1.JobCondition `json:"conditions"`
	} `json:"status"`
}

// Rollout returns the story of a workload's newest pods as a whole, and those of the pods.
func (r *Reader) Rollout(ctx context.Context, kind, namespace, name string) (*story.Story, []*story.Story, error) {
	why, guess, err := r.Inferred(ctx)
	if err != nil {
		return nil, nil, err
	}
	w := workloads[strings.ToLower(kind)]
	o := &object{}
	if err := r.read(ctx, o, append(w.path(namespace), name)...); err != nil {
		return nil, nil, err
	}
	about := traces.Object{Group: w.group, Resource: w.resource, Kind: w.kind, Namespace: namespace, Name: name,
		UID: o.UID}
	holder := o
	var notes []string
	if w.kind == "Deployment" {
		if holder, err = r.newest(ctx, o); err != nil {
			return nil, nil, err
		}
		if holder == nil {
			return story.Rollout(story.Workload{Object: about, At: r.now}, nil, nil), nil, nil
		}
		notes = append(notes, "the pods of its newest ReplicaSet, "+holder.Name)
	}
	pods, err := r.podsOf(ctx, namespace, holder)
	if err != nil {
		return nil, nil, err
	}
	if len(pods) > MaxStories {
		notes = append(notes, fmt.Sprintf("only %d of %d pods were read", MaxStories, len(pods)))
		pods = pods[:MaxStories]
	}
	all, own, more, err := r.storiesOf(ctx, namespace, []types.UID{o.UID, holder.UID}, pods, guess)
	if err != nil {
		return nil, nil, err
	}
	load := story.Workload{Object: about, At: r.now}
	note, err := r.waited(ctx, &load, w.kind, holder, pods)
	if err != nil {
		return nil, nil, err
	}
	if note != "" && !slices.Contains(more, noMessages) {
		more = append(more, note)
	}
	whole := story.Rollout(load, own, all)
	if guess {
		notes = append([]string{why}, notes...)
		whole.Resolution = inferred.Resolution
	}
	whole.Notes = append(append(notes, whole.Notes...), more...)
	return whole, all, nil
}

// waited adds to a workload what it and its events tell of the time without pods. holder makes the pods: of a
// Deployment it is a ReplicaSet. A Job is to end soon after its creation, so that the wait is a part of its story. The
// pods of other kinds come and go, and only that one could not be made says that somebody waited.
func (r *Reader) waited(ctx context.Context, w *story.Workload, kind string, holder *object,
	pods []corev1.Pod) (note string, err error) {
	if kind == "Deployment" {
		kind = "ReplicaSet"
	}
	events, err := r.eventsOf(ctx, kind, &holder.ObjectMeta)
	if apierrors.IsForbidden(err) {
		note, err = noMessages, nil
	}
	if err != nil {
		return "", err
	}
	until := r.now
	for i := range pods {
		if at := pods[i].CreationTimestamp.Time; at.Before(until) {
			w.Made, until = at, at
		}
	}
	w.Begun, w.Failure = inferred.NotCreated(events, until)
	if kind != "Job" {
		return note, nil
	}
	w.Begun = holder.CreationTimestamp.Time
	if s := holder.Status.StartTime; s != nil && s.After(w.Begun) {
		w.Begun = s.Time // it was suspended
	}
	for _, c := range holder.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Type == batchv1.JobFailed {
			w.Finished, w.How, w.Reason = c.LastTransitionTime.Time, "failed", safetext.Text(c.Reason)
		}
	}
	if done := holder.Status.CompletionTime; done != nil {
		w.Finished, w.How = done.Time, "finished"
	}
	return note, nil
}

// storiesOf returns the stories of pods, and those that the store has of their owners.
func (r *Reader) storiesOf(ctx context.Context, namespace string, owners []types.UID, pods []corev1.Pod,
	guess bool) (all, own []*story.Story, notes []string, err error) {
	if guess {
		all, notes, err = r.infer(ctx, namespace, pods)
		return all, nil, notes, err
	}
	for _, uid := range slices.Compact(owners) {
		if t, err := r.trace(ctx, namespace, string(uid)); err == nil {
			own = append(own, recorded(t))
		} else if notKept(err) == "" {
			return nil, nil, nil, err
		}
	}
	events := map[types.UID][]corev1.Event{}
	if len(pods) > 0 {
		if events, notes, err = r.eventsOfPods(ctx, namespace, noMessages); err != nil {
			return nil, nil, nil, err
		}
	}
	var untraced []corev1.Pod
	for i := range pods {
		t, err := r.trace(ctx, namespace, string(pods[i].UID))
		switch {
		case err == nil:
			all = append(all, r.completed(t, &pods[i], events[pods[i].UID]))
		case notKept(err) != "":
			untraced = append(untraced, pods[i])
		default:
			return nil, nil, nil, err
		}
	}
	if len(untraced) > 0 {
		guessed, more, err := r.infer(ctx, namespace, untraced)
		if err != nil {
			return nil, nil, nil, err
		}
		all = append(all, guessed...)
		notes = append([]string{fmt.Sprintf("%d of %d pods have no trace in traces.bonsai.io: they are built from %s",
			len(untraced), len(pods), fromState)}, more...)
	}
	return all, own, notes, nil
}

// newest returns the ReplicaSet of a Deployment with the highest revision, nil if it has none.
func (r *Reader) newest(ctx context.Context, deployment *object) (*object, error) {
	var sets []object
	query, err := labelled(deployment)
	if err != nil {
		return nil, err
	}
	if _, err := r.list(ctx, workloads["replicaset"].path(deployment.Namespace), query, items(&sets)); err != nil {
		return nil, err
	}
	sets = slices.DeleteFunc(sets, func(s object) bool { return !owned(&s.ObjectMeta, deployment.UID) })
	if len(sets) == 0 {
		return nil, nil
	}
	revision := func(o *object) int {
		n, _ := strconv.Atoi(o.Annotations["deployment.kubernetes.io/revision"]) // 0 without one
		return n
	}
	last := slices.MaxFunc(sets, func(a, b object) int {
		return cmp.Or(cmp.Compare(revision(&a), revision(&b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	return &last, nil
}

func owned(o *metav1.ObjectMeta, by types.UID) bool {
	c := metav1.GetControllerOfNoCopy(o)
	return c != nil && c.UID == by
}

// podsOf returns the pods of a workload, of a StatefulSet those of its newest revision.
func (r *Reader) podsOf(ctx context.Context, namespace string, o *object) ([]corev1.Pod, error) {
	query, err := labelled(o)
	if err != nil {
		return nil, err
	}
	var all []corev1.Pod
	if _, err := r.list(ctx, []string{"/api/v1", "namespaces", namespace, "pods"}, query, items(&all)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p corev1.Pod) bool {
		return !owned(&p.ObjectMeta, o.UID) || o.Status.UpdateRevision != "" &&
			p.Labels["controller-revision-hash"] != o.Status.UpdateRevision
	}), nil
}

// labelled is the query for what a workload selects.
func labelled(o *object) (map[string][]string, error) {
	if o.Spec.Selector == nil {
		return map[string][]string{}, nil
	}
	s, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("the selector of %s: %w", o.Name, err)
	}
	return map[string][]string{"labelSelector": {s.String()}}, nil
}

// Other returns the story of an object of any other kind. path is the object's on the server.
func (r *Reader) Other(ctx context.Context, about traces.Object, path []string) (*story.Story, error) {
	why, guess, err := r.Inferred(ctx)
	if err != nil {
		return nil, err
	}
	isNode := about.Kind == "Node" && about.Group == ""
	node, object := &corev1.Node{}, &metav1.PartialObjectMetadata{}
	if isNode {
		err = r.read(ctx, node, path...)
		object.ObjectMeta = node.ObjectMeta
	} else {
		err = r.read(ctx, object, path...)
	}
	if err != nil {
		return nil, err
	}
	about.UID = object.UID
	if !guess {
		t, err := r.trace(ctx, about.Namespace, string(about.UID))
		if err == nil {
			return recorded(t), nil
		}
		if why = notKept(err); why == "" {
			return nil, err
		}
	}
	if isNode {
		return guessed(inferred.Node(node), why), nil
	}
	return guessed(inferred.Object(about.Kind, about.Resource, &object.ObjectMeta), why), nil
}
