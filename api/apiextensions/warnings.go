package apiextensions

import (
	"fmt"
	"maps"
	"slices"

	"bonsai/api/apiextensions/structural"
)

// warnings returns a warning for each format that validates nothing, without those that old has as well. old may be
// nil. Repeating a warning with each update would hide new ones.
func warnings(crd, old *definition) []string {
	now := unknownFormats(crd)
	if old != nil {
		for format := range unknownFormats(old) {
			delete(now, format)
		}
	}
	var out []string
	for _, format := range slices.Sorted(maps.Keys(now)) {
		out = append(out, fmt.Sprintf("unrecognized format %q", format))
	}
	return out
}

func unknownFormats(crd *definition) map[string]bool {
	out := map[string]bool{}
	for i := range crd.Spec.Versions {
		if v := &crd.Spec.Versions[i]; v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			structural.UnknownFormats(v.Schema.OpenAPIV3Schema, out)
		}
	}
	return out
}
