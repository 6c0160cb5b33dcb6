package pod

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/why"
)

// stale explains containers of a ready pod that run with what ConfigMaps and Secrets had before they were changed:
// variables are set once, at the start, and files that are mounted by subPath do not follow either.
func stale(ctx context.Context, q *inquiry) (causes []why.Cause) {
	for i := range q.pod.Spec.Containers {
		c := &q.pod.Spec.Containers[i]
		s := status(q.pod.Status.ContainerStatuses, c.Name)
		if s == nil || s.State.Running == nil {
			continue
		}
		for _, f := range outdated(ctx, q, c, "container", s.State.Running.StartedAt.Time) {
			causes = append(causes, staleCause(q, c, f, false))
		}
	}
	return causes[:min(len(causes), maxHints)]
}

// source is a ConfigMap or a Secret that a container has read once.
type source struct {
	kind, name  string
	what, field string
	// variables are those of single keys, prefixes those before the names of all keys, and paths those of files.
	variables       map[string]string // the key, by variable
	prefixes, paths []string
	// changed is when its values were written last, and by whom.
	changed time.Time
	by      string
}

// outdated are the sources of a container that were changed after a time, at which it started.
func outdated(ctx context.Context, q *inquiry, c *corev1.Container, what string, started time.Time) (list []source) {
	for _, f := range fixed(q.pod, c, what) {
		if f.changed, f.by = changedAt(ctx, q, f); f.changed.After(started) {
			list = append(list, f)
		}
	}
	return list
}

// staleCause is the cause of a container that has a source as it was before; ended says that its run is over, so that
// the next one has what is there now.
func staleCause(q *inquiry, c *corev1.Container, f source, ended bool) why.Cause {
	o := why.Object{Kind: f.kind, Namespace: q.pod.Namespace, Name: f.name}
	cause := why.Cause{Code: "StaleConfiguration",
		Text: fmt.Sprintf("The %s %s was changed %s ago (by %s), after container %s had started: %s are those of "+
			"before.", f.kind, f.name, q.since(f.changed), f.by, c.Name, f.what),
		Evidence: []why.Evidence{why.See(o, ".metadata.managedFields[*].time",
			f.changed.UTC().Format(time.RFC3339), metav1.NewTime(f.changed)), why.See(q.self, f.field, f.name)},
		Fixes: []why.Fix{{Text: "Start the pod again: its containers then get what is there now."}}}
	owner := q.workload()
	switch {
	case owner != nil && slices.Contains(withTemplates, owner.Kind):
		cause.Fixes[0].Command = why.Command("kubectl rollout restart %s%s", owner.Arg(), owner.Flag())
	case owner == nil:
		cause.Fixes[0].Text = "Make the pod again: its containers then get what is there now."
	}
	if ended {
		cause.Text = fmt.Sprintf("The %s %s was changed %s ago (by %s), after the last start of container %s: %s were "+
			"those of before.", f.kind, f.name, q.since(f.changed), f.by, c.Name, f.what)
		if q.pod.Status.Phase != corev1.PodFailed {
			cause.Text += " The next start has what is there now."
		}
	}
	return cause
}

// fixed are the sources of a container that it does not follow, each once.
func fixed(p *corev1.Pod, c *corev1.Container, what string) (list []source) {
	add := func(kind, name, part, field string) *source {
		i := slices.IndexFunc(list, func(s source) bool { return s.kind == kind && s.name == name })
		if i < 0 {
			i = len(list)
			list = append(list, source{kind: kind, name: name, what: part, field: specField(what, c.Name, field),
				variables: map[string]string{}})
		}
		return &list[i]
	}
	const variables = "its variables from there"
	for i, from := range c.EnvFrom {
		field := fmt.Sprintf("envFrom[%d]", i)
		if r := from.ConfigMapRef; r != nil {
			f := add("ConfigMap", r.Name, variables, field)
			f.prefixes = append(f.prefixes, from.Prefix)
		}
		if r := from.SecretRef; r != nil {
			f := add("Secret", r.Name, variables, field)
			f.prefixes = append(f.prefixes, from.Prefix)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		field := fmt.Sprintf(`env[?(@.name=="%s")]`, e.Name)
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			add("ConfigMap", r.Name, variables, field).variables[e.Name] = r.Key
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			add("Secret", r.Name, variables, field).variables[e.Name] = r.Key
		}
	}
	for _, m := range c.VolumeMounts {
		if m.SubPath == "" && m.SubPathExpr == "" {
			continue
		}
		for _, v := range p.Spec.Volumes {
			kind, name := "", ""
			switch {
			case v.Name != m.Name:
			case v.ConfigMap != nil:
				kind, name = "ConfigMap", v.ConfigMap.Name
			case v.Secret != nil:
				kind, name = "Secret", v.Secret.SecretName
			}
			if kind != "" {
				f := add(kind, name, "its files by subPath from there",
					fmt.Sprintf(`volumeMounts[?(@.name=="%s")].subPath`, m.Name))
				f.paths = append(f.paths, m.MountPath)
			}
		}
	}
	return list
}

// ownsData reports whether a field manager has written values, and not labels alone.
func ownsData(fields *metav1.FieldsV1) bool {
	return fields != nil && containsOne(string(fields.Raw), `"f:data"`, `"f:binaryData"`)
}

// changedAt is when values of an object were written last, and by whom; zero if nothing says it.
func changedAt(ctx context.Context, q *inquiry, f source) (at time.Time, by string) {
	var m metav1.Object
	if f.kind == "Secret" {
		if s, _ := why.Get[corev1.Secret](ctx, q.World, q.pod.Namespace, f.name); s != nil {
			m = s
		}
	} else if c, _ := why.Get[corev1.ConfigMap](ctx, q.World, q.pod.Namespace, f.name); c != nil {
		m = c
	}
	if m == nil {
		return at, by
	}
	for _, e := range m.GetManagedFields() {
		if e.Time != nil && e.Time.After(at) && ownsData(e.FieldsV1) {
			at, by = e.Time.Time, e.Manager
		}
	}
	return at, by
}
