package pod

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// misconfigured explains a container that cannot be made of what its spec names.
func (q *inquiry) misconfigured(ctx context.Context, c *corev1.Container, w *corev1.ContainerStateWaiting, what string,
	seen why.Evidence) []why.Cause {
	var causes []why.Cause
	for _, n := range needs(c) {
		if cause, ok := q.need(ctx, n, fmt.Sprintf("%s %s", what, c.Name)); ok {
			cause.Evidence = append(cause.Evidence, seen)
			causes = append(causes, cause)
		}
	}
	if len(causes) > 0 {
		return causes
	}
	cause := why.Cause{Code: "CreateContainerConfigError",
		Text:     fmt.Sprintf("%s %s cannot be made: %s.", capital(what), c.Name, why.Quote(w.Message)),
		Evidence: []why.Evidence{seen, why.See(q.self, statusField(what, c.Name, "state.waiting.message"), w.Message)}}
	if strings.Contains(w.Message, "runAsNonRoot") {
		cause.Code = "RunAsNonRoot"
		cause.Text = fmt.Sprintf("%s %s must not run as root (runAsNonRoot), but its image %s does, or does not say "+
			"by number as whom.", capital(what), c.Name, c.Image)
		cause.Fixes = []why.Fix{{Text: "Set securityContext.runAsUser to another user than 0, or use an image whose " +
			"user is a number."}}
	}
	return []why.Cause{cause}
}

// need is an object, or one of its keys, that a container or a volume must find.
type need struct {
	kind, name, key string
	field           string // within the container or the pod
}

// needs are what the environment of a container names and what is not optional.
func needs(c *corev1.Container) (list []need) {
	for i, from := range c.EnvFrom {
		if r := from.ConfigMapRef; r != nil && !optional(r.Optional) {
			list = append(list, need{"ConfigMap", r.Name, "", fmt.Sprintf("envFrom[%d]", i)})
		}
		if r := from.SecretRef; r != nil && !optional(r.Optional) {
			list = append(list, need{"Secret", r.Name, "", fmt.Sprintf("envFrom[%d]", i)})
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		field := fmt.Sprintf(`env[?(@.name=="%s")]`, e.Name)
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil && !optional(r.Optional) {
			list = append(list, need{"ConfigMap", r.Name, r.Key, field})
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil && !optional(r.Optional) {
			list = append(list, need{"Secret", r.Name, r.Key, field})
		}
	}
	return list
}

func optional(o *bool) bool { return o != nil && *o }

// configMapKeys are the keys of a ConfigMap; nil, and known, if it does not exist.
func configMapKeys(ctx context.Context, w *why.World, namespace, name string) (keys map[string]bool, known bool) {
	m, known := why.Get[corev1.ConfigMap](ctx, w, namespace, name)
	if m == nil {
		return nil, known
	}
	keys = map[string]bool{}
	for k := range m.Data {
		keys[k] = true
	}
	for k := range m.BinaryData {
		keys[k] = true
	}
	return keys, true
}

// secretKeys are the keys of a Secret; nil, and known, if it does not exist.
func secretKeys(ctx context.Context, w *why.World, namespace, name string) (keys map[string]bool, known bool) {
	s, known := why.Get[corev1.Secret](ctx, w, namespace, name)
	if s == nil {
		return nil, known
	}
	keys = map[string]bool{}
	for k := range s.Data {
		keys[k] = true
	}
	return keys, true
}

// need reports whether an object or its key is missing, and explains it.
func (q *inquiry) need(ctx context.Context, n need, who string) (why.Cause, bool) {
	keys, known := configMapKeys(ctx, q.World, q.pod.Namespace, n.name)
	if n.kind == "Secret" {
		keys, known = secretKeys(ctx, q.World, q.pod.Namespace, n.name)
	}
	object := why.Object{Kind: n.kind, Namespace: q.pod.Namespace, Name: n.name}
	switch {
	case keys == nil && known:
		return why.Cause{Code: n.kind + "Missing",
			Text: fmt.Sprintf("The %s %s, which %s needs, does not exist in namespace %s.", n.kind, n.name, who,
				q.pod.Namespace),
			Evidence: []why.Evidence{why.Absent(n.kind, q.pod.Namespace, n.name),
				why.See(q.self, n.field, n.name)},
			Fixes: []why.Fix{create(object, n.key)}}, true
	case keys != nil && n.key != "" && !keys[n.key]:
		return why.Cause{Code: n.kind + "KeyMissing",
				Text: fmt.Sprintf("The %s %s has no key %q, which %s needs. It has: %s.", n.kind, n.name, n.key, who,
					why.And(sorted(keys))),
				Evidence: []why.Evidence{why.See(object, ".data", why.And(sorted(keys))),
					why.See(q.self, n.field, n.name+"/"+n.key)},
				Fixes: []why.Fix{{Text: fmt.Sprintf("Add the key %q to the %s, or name another key.", n.key, n.kind)}}},
			true
	}
	return why.Cause{}, false
}

func create(o why.Object, key string) why.Fix {
	if key == "" {
		key = "KEY"
	}
	verb := why.CommandLine("configmap")
	if o.Kind == "Secret" {
		verb = "secret generic"
	}
	return why.Fix{Text: "Create it; the kubelet tries again by itself.",
		Command: why.Command("kubectl create %s %s%s --from-literal=%s=VALUE", verb, o.Name, o.Flag(), key)}
}
