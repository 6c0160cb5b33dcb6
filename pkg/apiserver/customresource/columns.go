package customresource

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"

	"bonsai/api/resources"
)

// columns are the table of a version: the object's name, and what the definition says; by default its age.
func columns(v *v1.CustomResourceDefinitionVersion) ([]metav1.TableColumnDefinition,
	func(runtime.Object, time.Time) []any) {
	own := v.AdditionalPrinterColumns
	if len(own) == 0 {
		own = []v1.CustomResourceColumnDefinition{
			{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
				Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]}}
	}
	defs := []metav1.TableColumnDefinition{resources.NameColumn()}
	for _, c := range own {
		def := metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description,
			Priority: c.Priority}
		if def.Description == "" {
			def.Description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		defs = append(defs, def)
	}
	return defs, func(obj runtime.Object, now time.Time) []any {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return make([]any, len(defs))
		}
		cells := []any{u.GetName()}
		for i := range own {
			cells = append(cells, cell(&own[i], u, now))
		}
		return cells
	}
}

// cell is one of an object; nil if there is nothing at its path.
func cell(c *v1.CustomResourceColumnDefinition, u *unstructured.Unstructured, now time.Time) any {
	path := jsonpath.New(c.Name).AllowMissingKeys(true)
	if err := path.Parse("{" + c.JSONPath + "}"); err != nil {
		return nil // validation has refused it
	}
	found, err := path.FindResults(u.Object)
	if err != nil || len(found) == 0 || len(found[0]) == 0 {
		return nil
	}
	return single(found[0][0], c.Type, now) // the first, if there are several
}

// single is a value as a column of a type shows it.
func single(found reflect.Value, kind string, now time.Time) any {
	if !found.IsValid() || !found.CanInterface() {
		return nil
	}
	value := found.Interface()
	switch kind {
	case "integer":
		switch n := value.(type) {
		case int64:
			return n
		case float64:
			return int64(n)
		case json.Number:
			if i, err := n.Int64(); err == nil {
				return i
			}
		}
		return nil
	case "number":
		switch n := value.(type) {
		case int64:
			return float64(n)
		case float64:
			return n
		}
		return nil
	case "boolean":
		if b, ok := value.(bool); ok {
			return b
		}
		return nil
	case "date":
		text, ok := value.(string)
		if !ok {
			return nil
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return "<invalid>"
		}
		return resources.Age(metav1.NewTime(at), now)
	}
	return text(value)
}

// text is a value as a column of strings shows it: plain, or as JSON if it is no single one.
func text(value any) any {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		return v
	case map[string]any, []any:
		b, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		return string(b)
	}
	return strings.TrimSpace(fmt.Sprint(value))
}
