package printers

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "managedFields": []any{map[string]any{"manager": "m"}}},
		"spec":     map[string]any{"replicas": int64(2)},
	}}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"":                               "deployment.apps/web created\n",
		"name":                           "deployment.apps/web\n",
		"yaml":                           "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 2\n",
		"json":                           "{\n    \"apiVersion\": \"apps/v1\",\n    \"kind\": \"Deployment\",\n    \"metadata\": {\n        \"name\": \"web\"\n    },\n    \"spec\": {\n        \"replicas\": 2\n    }\n}\n",
		"jsonpath={.metadata.name}":      "web",
		"go-template={{.spec.replicas}}": "2",
	} {
		f := NewFlags()
		f.Output = output
		p, err := f.Printer("created")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := p.Print(object(), &out); err != nil || out.String() != want {
			t.Errorf("-o %q: %q (%v), want %q", output, out.String(), err, want)
		}
	}
	f := NewFlags()
	f.Output = "foo"
	if _, err := f.Printer(""); err == nil {
		t.Error("an unknown format was accepted")
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	table := &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name", Format: "name"}, {Name: "Node", Priority: 1},
			{Name: "Age"}},
		Rows: []metav1.TableRow{
			{Cells: []any{"p", "n1", "5m\nx"},
				Object: runtime.RawExtension{
					Raw: []byte(`{"metadata":{"name":"p","namespace":"ns","labels":{"a":"b"}}}`)}}},
	}
	for want, o := range map[string]TableOptions{
		"NAME   AGE\np      5m...\n":               {},
		"NAME   NODE   AGE\np      n1     5m...\n": {Wide: true},
		"p     5m...\n":                            {NoHeaders: true},
		"NAMESPACE   NAME    AGE     A     LABELS\nns          pod/p   5m...   b     a=b\n": {WithNamespace: true,
			Kind: "pod", LabelColumns: []string{"a"}, ShowLabels: true},
	} {
		var out bytes.Buffer
		a := NewAligner(&out)
		Table(a, table, o, true)
		if err := a.Flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("%+v: %q, want %q", o, out.String(), want)
		}
	}
}

func TestRelaxedPath(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"x.y": "{.x.y}", ".x": "{.x}", "{x}": "{.x}", "{.x}": "{.x}"} {
		if got, err := RelaxedPath(in); err != nil || got != want {
			t.Errorf("RelaxedPath(%q) = %q, %v", in, got, err)
		}
	}
	if _, err := RelaxedPath("{x"); err == nil {
		t.Error("an open brace was accepted")
	}
}

// TestTemplateErrors: JSONPath explains what was wrong in the error, templates on the output.
func TestTemplateErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ output, out, err string }{
		{"jsonpath={.metadata[3]}", "",
			"error executing jsonpath \"{.metadata[3]}\": Error executing template: map[string]interface {} is not array or slice. " +
				"Printing more information for debugging the template:\n\ttemplate was:\n\t\t{.metadata[3]}\n\tobject given to jsonpath engine was:\n\t\tmap[string]interface {}{\"apiVersion\":\"v1\", \"metadata\":map[string]interface {}{\"name\":\"web\"}}\n\n\n"},
		{"go-template={{.metadata.name.x}}",
			"Error executing template: template: output:1:11: executing \"output\" at <.metadata.name.x>: can't evaluate field x in type interface {}. " +
				"Printing more information for debugging the template:\n\ttemplate was:\n\t\t{{.metadata.name.x}}\n\traw data was:\n\t\t{\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web\"}}\n" +
				"\tobject given to template engine was:\n\t\tmap[apiVersion:v1 metadata:map[name:web]]\n\n",
			"error executing template \"{{.metadata.name.x}}\": template: output:1:11: executing \"output\" at <.metadata.name.x>: can't evaluate field x in type interface {}"},
	} {
		f := NewFlags()
		f.Output = c.output
		p, err := f.Printer("")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = p.Print(&unstructured.Unstructured{
			Object: map[string]any{"apiVersion": "v1", "metadata": map[string]any{"name": "web"}}}, &out)
		if err == nil || err.Error() != c.err || out.String() != c.out {
			t.Errorf("-o %s:\n got %q, %v\nwant %q, %s", c.output, out.String(), err, c.out, c.err)
		}
	}
}

// TestKYAMLIsSwitchedOff: KUBECTL_KYAML=false takes the format away, and nothing else does.
func TestKYAMLIsSwitchedOff(t *testing.T) {
	for value, on := range map[string]bool{"": true, "true": true, "odd": true, "0": true, "false": false,
		"False": false} {
		t.Setenv("KUBECTL_KYAML", value)
		f := NewFlags()
		f.Output = "kyaml"
		_, err := f.Printer("")
		if refused := (*NoFormatError)(nil); errors.As(err, &refused) == on ||
			!on && slices.Contains(refused.Allowed, "kyaml") {
			t.Errorf("KUBECTL_KYAML=%s: %v", value, err)
		}
	}
}
