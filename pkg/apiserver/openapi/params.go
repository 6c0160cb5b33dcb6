package openapi

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// queries are the parameters of a query that the fields of options are, with their words; kinds are their types, by name.
func queries(words, kinds map[string]string) []param {
	out := make([]param, 0, len(kinds))
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		out = append(out, param{name: name, kind: kinds[name], description: words[name]})
	}
	return out
}

// selectionParams say which objects of a collection are meant.
func selectionParams() []param {
	return queries(metav1.ListOptions{}.SwaggerDoc(), map[string]string{
		"continue": "string", "fieldSelector": "string", "labelSelector": "string", "limit": "integer", "resourceVersion": "string",
		"resourceVersionMatch": "string", "sendInitialEvents": "boolean", "timeoutSeconds": "integer",
	})
}

func listParams() []param {
	return append(selectionParams(), queries(metav1.ListOptions{}.SwaggerDoc(), map[string]string{"allowWatchBookmarks": "boolean", "watch": "boolean"})...)
}

func getParams() []param {
	return queries(metav1.GetOptions{}.SwaggerDoc(), map[string]string{"resourceVersion": "string"})
}

func writeParams() []param {
	return queries(metav1.CreateOptions{}.SwaggerDoc(), map[string]string{"dryRun": "string", "fieldManager": "string", "fieldValidation": "string"})
}

func patchParams() []param {
	return queries(metav1.PatchOptions{}.SwaggerDoc(), map[string]string{"dryRun": "string", "fieldManager": "string", "fieldValidation": "string", "force": "boolean"})
}

func deleteParams() []param {
	return queries(metav1.DeleteOptions{}.SwaggerDoc(), map[string]string{
		"dryRun": "string", "gracePeriodSeconds": "integer", "ignoreStoreReadErrorWithClusterBreakingPotential": "boolean",
		"orphanDependents": "boolean", "propagationPolicy": "string",
	})
}

func prettyParam() param {
	return param{name: "pretty", kind: "string", description: "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or command-line HTTP tool (curl and wget)."}
}
