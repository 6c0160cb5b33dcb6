package write

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// SplitPairs parts arguments into those that name objects and the changes after them: "key=value" and "key-". what
// names the changes in errors.
func SplitPairs(args []string, what string) (objects, pairs []string, err error) {
	for _, a := range args {
		pair := strings.Contains(a, "=") && a[0] != '=' || strings.HasSuffix(a, "-") && a != "-"
		switch {
		case pair:
			pairs = append(pairs, a)
		case len(pairs) > 0:
			return nil, nil, fmt.Errorf("all resources must be specified before %s changes: %s", what, a)
		default:
			objects = append(objects, a)
		}
	}
	return objects, pairs, nil
}

// ErrNoObjects is the error of a verb with changes but nothing to change.
var ErrNoObjects = errors.New("one or more resources must be specified as <resource> <name> or <resource>/<name>")

// MetadataPatch is the merge patch that sets and removes keys of one map below metadata ("labels", "annotations"). A
// version makes it fail on any other version of the object.
func MetadataPatch(field string, set map[string]string, remove []string, version string) ([]byte, error) {
	values := map[string]any{}
	for k, v := range set {
		values[k] = v
	}
	for _, k := range remove {
		values[k] = nil
	}
	metadata := map[string]any{field: values}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}
