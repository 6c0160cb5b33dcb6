package wait

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"bonsai/pkg/kubectl/printers"
)

// parse reads --for.
func parse(want string) (check, error) {
	lower := strings.ToLower(want)
	switch {
	case lower == "delete":
		return func(u *unstructured.Unstructured) (bool, error) { return u == nil, nil }, nil
	case lower == "create":
		return func(u *unstructured.Unstructured) (bool, error) { return u != nil, nil }, nil
	case strings.HasPrefix(lower, "condition="):
		name, value, ok := strings.Cut(want[len("condition="):], "=")
		if !ok {
			value = "true"
		}
		return condition(name, value), nil
	case strings.HasPrefix(lower, "jsonpath="):
		return path(want[len("jsonpath="):])
	case want == "":
		return nil, errors.New("unrecognized condition: []")
	}
	return nil, fmt.Errorf("unrecognized condition: %q", want)
}

// condition holds if the status condition has the value, in upper or lower case, and describes the current generation:
// a condition that a controller has set for an older spec says nothing about the one that the user waits for.
func condition(name, value string) check {
	return func(u *unstructured.Unstructured) (bool, error) {
		if u == nil {
			return false, nil
		}
		all, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
		if err != nil {
			return false, err
		}
		for _, c := range all {
			m, ok := c.(map[string]any)
			if !ok || !strings.EqualFold(fmt.Sprint(m["type"]), name) {
				continue
			}
			if seen, found := generation(u.Object, m); found && seen < u.GetGeneration() {
				return false, nil
			}
			return strings.EqualFold(fmt.Sprint(m["status"]), value), nil
		}
		return false, nil
	}
}

// generation returns the generation that the condition, or else the status, has observed; false if neither names one.
// The condition's own comes first, because several controllers may write conditions of one object.
func generation(object, condition map[string]any) (int64, bool) {
	if g, ok, _ := unstructured.NestedInt64(condition, "observedGeneration"); ok {
		return g, true
	}
	g, ok, _ := unstructured.NestedInt64(object, "status", "observedGeneration")
	return g, ok
}

// path holds if the JSONPath has the value, or any value if none is given. Several values, or a value for a map or
// list, are an error and end the wait: they could never be compared.
func path(spec string) (check, error) {
	expr, value, hasValue := splitPath(spec)
	if hasValue && value == "" {
		return nil, errors.New("jsonpath wait has to have a value after equal sign, like --for=jsonpath='{.status.readyReplicas}'=3")
	}
	expr = strings.Trim(expr, `'"`)
	value = strings.Trim(value, `'"`)
	relaxed, err := printers.RelaxedPath(expr)
	if err != nil {
		return nil, err
	}
	if relaxed == "" {
		return nil, errors.New("jsonpath expression cannot be empty")
	}
	j := jsonpath.New("wait").AllowMissingKeys(true)
	if err := j.Parse(relaxed); err != nil {
		return nil, err
	}
	return func(u *unstructured.Unstructured) (bool, error) {
		if u == nil {
			return false, nil
		}
		found, err := j.FindResults(u.Object)
		if err != nil || len(found) == 0 || len(found[0]) == 0 {
			return false, err
		}
		if len(found) > 1 || len(found[0]) > 1 {
			return false, errors.New("given jsonpath expression matches more than one value")
		}
		v := found[0][0].Interface()
		switch v.(type) {
		case map[string]any, []any:
			if hasValue {
				return false, errors.New("jsonpath leads to a nested object or list which is not supported")
			}
		}
		return !hasValue || fmt.Sprint(v) == value, nil
	}, nil
}

// splitPath splits "path=value" at the first = outside of the path's brackets: filters such as [?(@.a=="b")] have
// their own.
func splitPath(spec string) (expr, value string, hasValue bool) {
	depth := 0
	for i, c := range spec {
		switch c {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
		case '=':
			if depth == 0 {
				return spec[:i], spec[i+1:], true
			}
		}
	}
	return spec, "", false
}
