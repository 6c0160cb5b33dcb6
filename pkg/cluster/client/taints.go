package client

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// taintedAnnotation lists the taints, as key:effect, that the cluster's configuration has given a node, as
// labelledAnnotation does for labels.
const taintedAnnotation = "bonsai.io/configured-taints"

// parseTaint reads key=value:effect, the form of the configuration, which has checked it.
func parseTaint(text string) corev1.Taint {
	key, rest, _ := strings.Cut(text, "=")
	value, effect, _ := strings.Cut(rest, ":")
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
}

// taintName returns the identity of a taint: a node has one taint for each key and effect.
func taintName(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

// taintPatch returns the merge patch (RFC 7386) that gives a node the wanted taints and removes those of an earlier
// configuration; nil if there is nothing to change. The patch replaces the whole list. So it names the version of the
// node that was read: a controller may set a taint meanwhile, and must not lose it. If the version is old, the API
// server answers 409, and ThroughRestarts reads the node again.
func taintPatch(node *corev1.Node, wanted []string) ([]byte, error) {
	taints := slices.Clone(node.Spec.Taints)
	var names []string
	for _, text := range wanted {
		t := parseTaint(text)
		names = append(names, taintName(t))
		i := slices.IndexFunc(taints, func(is corev1.Taint) bool { return taintName(is) == taintName(t) })
		switch {
		case i < 0:
			taints = append(taints, t)
		case taints[i].Value != t.Value:
			taints[i] = t
		}
	}
	before := node.Annotations[taintedAnnotation]
	for name := range strings.SplitSeq(before, ",") {
		if !slices.Contains(names, name) {
			taints = slices.DeleteFunc(taints, func(is corev1.Taint) bool { return taintName(is) == name })
		}
	}
	slices.Sort(names)
	now := strings.Join(slices.Compact(names), ",")
	same := equality.Semantic.DeepEqual(taints, node.Spec.Taints)
	if same && now == before {
		return nil, nil
	}
	annotations := map[string]any{taintedAnnotation: now}
	if now == "" {
		annotations[taintedAnnotation] = nil
	}
	patch := map[string]any{
		"metadata": map[string]any{"annotations": annotations, "resourceVersion": node.ResourceVersion}}
	if !same {
		patch["spec"] = map[string]any{"taints": taints}
	}
	return json.Marshal(patch)
}
