package openapi

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// options are the fields of a query, which describe themselves.
type options interface{ SwaggerDoc() map[string]string }

// queries are the parameters of a query that the fields of options are, with their words; those of but are left out,
// and so is what a query cannot say (times, objects).
func queries(o options, but ...string) []param {
	var out []param
	words := o.SwaggerDoc()
	t := reflect.TypeOf(o)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if kind := queried(f.Type); name != "" && kind != "" && !slices.Contains(but, name) {
			out = append(out, param{name: name, kind: kind, description: words[name]})
		}
	}
	return out
}

// queried is the type of a query's parameter; of several values that of one; "": it is none.
func queried(t reflect.Type) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int32, reflect.Int64:
		return "integer"
	}
	return ""
}

// selectionParams say which objects of a collection are meant.
func selectionParams() []param {
	return queries(metav1.ListOptions{}, "allowWatchBookmarks", "watch")
}

func listParams() []param { return queries(metav1.ListOptions{}) }

func getParams() []param { return queries(metav1.GetOptions{}) }

func writeParams() []param { return queries(metav1.CreateOptions{}) }

func patchParams() []param { return queries(metav1.PatchOptions{}) }

func deleteParams() []param { return queries(metav1.DeleteOptions{}) }

func prettyParam() param {
	return param{name: "pretty", kind: "string",
		description: "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or command-line HTTP tool (curl and wget)."}
}
