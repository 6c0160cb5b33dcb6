package tour

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxChanges is how many changed fields are shown, and maxValue how long a value may be.
const (
	maxChanges = 12
	maxValue   = 70
)

// noise are fields that change with every write and tell a reader nothing.
var noise = []string{".metadata.managedFields", ".metadata.resourceVersion", ".metadata.generation", ".metadata.uid",
	".apiVersion", ".kind", ".metadata.creationTimestamp"}

// dull are fields of list entries that say when something was seen, or repeat what the entry is shown by.
var dull = []string{"lastProbeTime", "lastTransitionTime", "observedGeneration", "name", "type", "started"}

// changes returns what differs between two objects as JSON, one field a line, in the order of the fields. before is
// empty for an object that was not shown yet: then it only says how many fields the object has.
func changes(before, after string) ([]string, error) {
	now, err := leaves(after)
	if err != nil {
		return nil, err
	}
	if before == "" {
		return []string{fmt.Sprintf("it has %d fields now", len(now))}, nil
	}
	was, err := leaves(before)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(was)
	maps.Copy(all, now)
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		a, had := was[path]
		b, has := now[path]
		switch {
		case had && !has:
			lines = append(lines, fmt.Sprintf("- %s = %s", path, a))
		case !had:
			lines = append(lines, fmt.Sprintf("+ %s = %s", path, b))
		case a != b:
			lines = append(lines, fmt.Sprintf("~ %s: %s → %s", path, a, b))
		}
	}
	if more := len(lines) - maxChanges; more > 0 {
		lines = append(lines[:maxChanges], fmt.Sprintf("… and %d more", more))
	}
	if len(lines) == 0 {
		lines = []string{"nothing has changed in it"}
	}
	return lines, nil
}

// leaves returns the fields of an object that hold no others, by their path.
func leaves(text string) (map[string]string, error) {
	var object any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	out := map[string]string{}
	walk("", object, out)
	return out, nil
}

func walk(path string, value any, out map[string]string) {
	for _, n := range noise {
		if strings.HasPrefix(path, n) {
			return
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for k, child := range v {
			walk(path+"."+k, child, out)
		}
	case []any:
		for i, child := range v {
			name := key(child, i)
			if entry, ok := child.(map[string]any); ok && name != fmt.Sprint(i) {
				child = maps.Clone(entry)
				maps.DeleteFunc(child.(map[string]any), func(k string, _ any) bool { return slices.Contains(dull, k) })
			}
			walk(fmt.Sprintf("%s[%s]", path, name), child, out)
		}
	default:
		text := fmt.Sprint(v)
		if r := []rune(text); len(r) > maxValue {
			text = string(r[:maxValue]) + "…"
		}
		out[path] = text
	}
}

// key names an entry of a list: by its name or type, which say more than its number.
func key(entry any, i int) string {
	if m, ok := entry.(map[string]any); ok {
		for _, field := range []string{"name", "type"} {
			if s, ok := m[field].(string); ok {
				return s
			}
		}
	}
	return fmt.Sprint(i)
}
