package printers

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/template"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
)

// content is obj as maps, slices and plain values.
func content(obj runtime.Object) (any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var out any
	err = json.Unmarshal(data, &out)
	return out, err
}

// text is the template: the argument of -o, that of --template, or the file either names.
func (f *Flags) text(arg string, file bool) (string, error) {
	if arg == "" {
		arg = f.Template
	}
	if arg == "" {
		return "", errors.New("template format specified but no template given")
	}
	if !file {
		return arg, nil
	}
	data, err := os.ReadFile(arg)
	if err != nil {
		return "", fmt.Errorf("error reading --template %s, %w", arg, err)
	}
	return string(data), nil
}

func (f *Flags) jsonPath(format, arg string) (Printer, error) {
	text, err := f.text(arg, format == "jsonpath-file")
	if err != nil {
		return nil, err
	}
	j := jsonpath.New("out").AllowMissingKeys(f.AllowMissingKeys)
	if err := j.Parse(text); err != nil {
		return nil, fmt.Errorf("error parsing jsonpath %s, %w", text, err)
	}
	j.EnableJSONOutput(format == "jsonpath-as-json")
	return Func(func(obj runtime.Object, w io.Writer) error {
		data, err := content(obj)
		if err != nil {
			return err
		}
		if err := j.Execute(w, data); err != nil {
			return fmt.Errorf("error executing jsonpath %q: Error executing template: %w. Printing more information for debugging the template:\n"+
				"\ttemplate was:\n\t\t%v\n\tobject given to jsonpath engine was:\n\t\t%#v\n\n\n", text, err, text, data)
		}
		return nil
	}), nil
}

func (f *Flags) goTemplate(format, arg string) (Printer, error) {
	text, err := f.text(arg, format == "go-template-file" || format == "templatefile")
	if err != nil {
		return nil, err
	}
	t, err := template.New("output").Funcs(template.FuncMap{"exists": exists, "base64decode": base64decode}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("error parsing template %s, %w", text, err)
	}
	if f.AllowMissingKeys {
		t.Option("missingkey=default")
	} else {
		t.Option("missingkey=error")
	}
	return Func(func(obj runtime.Object, w io.Writer) error {
		data, err := content(obj)
		if err != nil {
			return err
		}
		if err := t.Execute(w, data); err != nil {
			// Unlike those of JSONPath, what explains the error goes to the output, as kubectl's users know it.
			raw, _ := json.Marshal(data)
			fmt.Fprintf(w, "Error executing template: %v. Printing more information for debugging the template:\n", err)
			fmt.Fprintf(w, "\ttemplate was:\n\t\t%v\n\traw data was:\n\t\t%s\n", text, raw)
			fmt.Fprintf(w, "\tobject given to template engine was:\n\t\t%v\n\n", data)
			return fmt.Errorf("error executing template %q: %w", text, err)
		}
		return nil
	}), nil
}

// exists tells templates whether the value has all the keys, one inside the other.
func exists(item any, keys ...any) bool {
	for _, k := range keys {
		switch v := item.(type) {
		case map[string]any:
			name, _ := k.(string)
			next, ok := v[name]
			if !ok {
				return false
			}
			item = next
		case []any:
			i, ok := k.(int)
			if !ok || i < 0 || i >= len(v) {
				return false
			}
			item = v[i]
		default:
			return false
		}
	}
	return true
}

func base64decode(v string) (string, error) {
	data, err := base64.StdEncoding.DecodeString(v)
	if err != nil {
		return "", errors.New("base64 decode failed: " + err.Error())
	}
	return string(data), nil
}
