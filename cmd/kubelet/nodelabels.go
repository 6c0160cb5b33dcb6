package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"bonsai/api/nodelabels"
)

// checkNodeLabels refuses at the start the labels of --node-labels that the API server would refuse at every attempt to
// register the node: invalid ones, and those that a node may not give itself (NodeRestriction).
func checkNodeLabels(labels map[string]string) error {
	var unknown, invalid []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !nodelabels.MayRegister(key) {
			unknown = append(unknown, key)
		}
		if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
			invalid = append(invalid, fmt.Sprintf("'%s' - %s", key, strings.Join(wrong, ", ")))
		}
		if wrong := validation.IsValidLabelValue(labels[key]); len(wrong) > 0 {
			invalid = append(invalid, fmt.Sprintf("'%s' - %s", labels[key], strings.Join(wrong, ", ")))
		}
	}
	switch {
	case len(unknown) > 0:
		return fmt.Errorf("unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: %v\n--node-labels in the 'kubernetes.io' namespace "+
			"must begin with an allowed prefix (%s) or be in the specifically allowed set (%s)", unknown,
			strings.Join(nodelabels.OwnPrefixes(), ", "), strings.Join(nodelabels.Own(), ", "))
	case len(invalid) > 0:
		return fmt.Errorf("invalid node labels: %s", strings.Join(invalid, "; "))
	}
	return nil
}
