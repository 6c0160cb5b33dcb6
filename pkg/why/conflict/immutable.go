package conflict

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/why"
)

// cannotChange are the words by which API servers refuse changes of fields that are fixed.
var cannotChange = []string{"field is immutable", "updates to statefulset spec for fields other than",
	"pod updates may not change fields other than", "cannot change roleRef", "may not be changed", "is immutable after",
	"updates to parameters are forbidden", "updates to provisioner are forbidden", "may not change once set",
	"forbidden after creation"}

// maxChanges is how many fields of a file are named.
const maxChanges = 5

// refused explains an apply that the API server does not take, apart from conflicts. Of fields that cannot be changed
// it says which of the file's they are.
func refused(ctx context.Context, c *why.Case, self why.Object, file, live *unstructured.Unstructured,
	err error) why.Cause {
	seen := why.See(self, ".metadata.name", self.Name)
	fixed := slices.ContainsFunc(cannotChange, func(w string) bool { return strings.Contains(err.Error(), w) })
	if live == nil || !fixed {
		return why.Refused(ctx, c, self.Namespace, err.Error(), seen)
	}
	var changes []change
	for _, part := range slices.Sorted(maps.Keys(file.Object)) {
		if part == "metadata" || part == "status" || part == "apiVersion" || part == "kind" {
			continue
		}
		changes = differing(changes, "."+part, file.Object[part], live.Object[part])
	}
	var named []change
	for _, ch := range changes {
		if mentions(err.Error(), ch.path) {
			named = append(named, ch)
		}
	}
	if len(named) == 0 {
		named = changes
	}
	cause := why.Cause{Code: "ImmutableField", Evidence: []why.Evidence{}}
	var texts []string
	for _, ch := range named[:min(len(named), maxChanges)] {
		text := ch.path
		if self.Kind != "Secret" { // answers are shown to others
			text = fmt.Sprintf("%s (%s, and %s in the file)", ch.path, short(ch.now), short(ch.then))
			cause.Evidence = append(cause.Evidence, why.See(self, ch.path, short(ch.now)))
		}
		texts = append(texts, text)
	}
	cause.Text = fmt.Sprintf("The file changes what cannot be changed in an existing %s: %s. The API server says: %s.",
		self.Kind, why.And(texts), why.Quote(err.Error()))
	cause.Fixes = again(self, named)
	return cause
}

// change is a field that a file has otherwise than the object.
type change struct {
	path      string
	now, then any
}

// differing adds the fields that a file says otherwise than the object. Lists of equal length are compared one by one.
func differing(list []change, path string, file, live any) []change {
	switch a := file.(type) {
	case map[string]any:
		b, ok := live.(map[string]any)
		if !ok && live != nil {
			break
		}
		for _, k := range slices.Sorted(maps.Keys(a)) {
			if k == "creationTimestamp" || k == "status" {
				continue
			}
			list = differing(list, path+"."+k, a[k], b[k])
		}
		return list
	case []any:
		b, ok := live.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		for i := range a {
			list = differing(list, fmt.Sprintf("%s[%d]", path, i), a[i], b[i])
		}
		return list
	}
	if reflect.DeepEqual(file, live) || fmt.Sprint(file) == fmt.Sprint(live) {
		return list
	}
	return append(list, change{path, live, file})
}

// mentions reports whether a message names a field or what it is in: "spec.selector" of
// ".spec.selector.matchLabels.app".
func mentions(message, path string) bool {
	parts := strings.Split(strings.TrimPrefix(path, "."), ".")
	for n := len(parts); n > 1; n-- {
		if strings.Contains(message, strings.Join(parts[:n], ".")+":") {
			return true
		}
	}
	return len(parts) == 1 && strings.Contains(message, parts[0]+":")
}

// short is a value as text that a sentence can have.
func short(v any) string {
	if v == nil {
		return "not set"
	}
	const most = 60
	text := fmt.Sprint(v)
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "")
}

// again says how an object gets the fields nevertheless.
func again(self why.Object, changes []change) (fixes []why.Fix) {
	grows := slices.ContainsFunc(changes, func(ch change) bool {
		return strings.Contains(ch.path, "volumeClaimTemplates")
	})
	switch self.Kind {
	case "StatefulSet", "Deployment", "ReplicaSet", "DaemonSet":
		if grows {
			fixes = append(fixes, why.Fix{Text: "To grow volumes, change the claims themselves; templates are for new ones."})
		}
		return append(fixes, why.Fix{Text: "Delete it without its pods, and apply the file again: it takes them over.",
			Command: "kubectl delete " + self.Arg() + self.Flag() + " --cascade=orphan"})
	case "PersistentVolumeClaim", "PersistentVolume":
		return []why.Fix{{Text: "Make a new one under another name: deleting this one may delete its data."}}
	}
	return []why.Fix{{Text: "Leave these fields as they are, or delete the object and apply the file again.",
		Command: "kubectl delete " + self.Arg() + self.Flag()}}
}
