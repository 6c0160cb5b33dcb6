package pod

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/why"
)

// stale explains a container that runs with what ConfigMaps and Secrets had before they were changed: variables are set
// once, at the start, and files that are mounted by subPath do not follow either.
func stale(ctx context.Context, q *inquiry) (causes []why.Cause) {
	for i := range q.pod.Spec.Containers {
		c := &q.pod.Spec.Containers[i]
		s := status(q.pod.Status.ContainerStatuses, c.Name)
		if s == nil || s.State.Running == nil {
			continue
		}
		started := s.State.Running.StartedAt.Time
		for _, f := range fixed(q.pod, c) {
			changed, by := changedAt(ctx, q, f)
			if !changed.After(started) {
				continue
			}
			o := why.Object{Kind: f.kind, Namespace: q.pod.Namespace, Name: f.name}
			cause := why.Cause{Code: "StaleConfiguration",
				Text: fmt.Sprintf("The %s %s was changed %s ago (by %s), after container %s had started: %s are those of "+
					"before.", f.kind, f.name, q.since(changed), by, c.Name, f.what),
				Evidence: []why.Evidence{why.See(o, ".metadata.managedFields[*].time",
					changed.UTC().Format(time.RFC3339), metav1.NewTime(changed)), why.See(q.self, f.field, f.name)},
				Fixes: []why.Fix{{Text: "Start the pod again: its containers then get what is there now."}}}
			if owner := q.workload(); owner != nil && owner.Group == "apps" {
				cause.Fixes[0].Command = why.Command("kubectl rollout restart %s%s", owner.Arg(), owner.Flag())
			}
			causes = append(causes, cause)
		}
	}
	return causes[:min(len(causes), maxHints)]
}

// source is a ConfigMap or a Secret that a container has read once.
type source struct {
	kind, name  string
	what, field string
}

// fixed are the sources of a container that it does not follow, each once.
func fixed(p *corev1.Pod, c *corev1.Container) (list []source) {
	seen := map[string]bool{}
	add := func(kind, name, what, field string) {
		if name != "" && !seen[kind+name] {
			seen[kind+name] = true
			list = append(list, source{kind, name, what, specField("container", c.Name, field)})
		}
	}
	const variables = "its variables from there"
	for i, from := range c.EnvFrom {
		field := fmt.Sprintf("envFrom[%d]", i)
		if from.ConfigMapRef != nil {
			add("ConfigMap", from.ConfigMapRef.Name, variables, field)
		}
		if from.SecretRef != nil {
			add("Secret", from.SecretRef.Name, variables, field)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		field := fmt.Sprintf(`env[?(@.name=="%s")]`, e.Name)
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			add("ConfigMap", r.Name, variables, field)
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			add("Secret", r.Name, variables, field)
		}
	}
	for _, m := range c.VolumeMounts {
		if m.SubPath == "" && m.SubPathExpr == "" {
			continue
		}
		for _, v := range p.Spec.Volumes {
			field := fmt.Sprintf(`volumeMounts[?(@.name=="%s")].subPath`, m.Name)
			switch {
			case v.Name != m.Name:
			case v.ConfigMap != nil:
				add("ConfigMap", v.ConfigMap.Name, "its files by subPath from there", field)
			case v.Secret != nil:
				add("Secret", v.Secret.SecretName, "its files by subPath from there", field)
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
