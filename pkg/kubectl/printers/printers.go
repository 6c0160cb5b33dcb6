// Package printers shows objects in the output formats of kubectl: names, JSON, YAML, JSONPath, Go templates, custom
// columns and tables.
package printers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
	"sigs.k8s.io/yaml/kyaml"

	"bonsai/pkg/plainjson"
)

// Printer shows one object, or a list, on w. A printer may be used for several objects; YAML documents are then
// separated.
type Printer interface {
	Print(obj runtime.Object, w io.Writer) error
}

// Func is a function as a Printer.
type Func func(obj runtime.Object, w io.Writer) error

// Print calls f.
func (f Func) Print(obj runtime.Object, w io.Writer) error { return f(obj, w) }

// Flags are -o and the flags that go with it.
type Flags struct {
	Output, Template  string
	AllowMissingKeys  bool
	ShowManagedFields bool
	// documents counts the YAML documents that the printers of these flags wrote: all but the first begin with "---".
	documents int
	// Extra are formats that the verb itself handles, for the error message: "wide".
	Extra []string
}

// NewFlags returns the defaults.
func NewFlags() *Flags { return &Flags{AllowMissingKeys: true} }

// AddFlags adds -o, --template, --allow-missing-template-keys and --show-managed-fields.
func (f *Flags) AddFlags(set *pflag.FlagSet) {
	f.AddOutput(set, fmt.Sprintf("Output format. One of: (%s).", strings.Join(f.allowed(", "), ", ")))
	f.AddTemplateFlags(set)
}

// AddOutput adds -o alone.
func (f *Flags) AddOutput(set *pflag.FlagSet, usage string) {
	set.VarP((*format)(&f.Output), "output", "o", usage)
}

// format is the value of -o. The names of plainFormats are taken in capitals too; those of templates, which have an
// argument, are not.
type format string

var plainFormats = []string{"json", "yaml", "kyaml", "name"}

// Set implements pflag.Value.
func (f *format) Set(s string) error {
	if lower := strings.ToLower(s); slices.Contains(plainFormats, lower) {
		s = lower
	}
	*f = format(s)
	return nil
}

func (f *format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *format) Type() string { return "string" }

// AddTemplateFlags adds the flags that go with -o, for a verb that words -o itself.
func (f *Flags) AddTemplateFlags(set *pflag.FlagSet) {
	set.StringVar(&f.Template, "template", f.Template,
		"Template string or path to template file to use when -o=go-template, -o=go-template-file. The template format is golang templates [http://golang.org/pkg/text/template/#pkg-overview].")
	set.BoolVar(&f.AllowMissingKeys, "allow-missing-template-keys", f.AllowMissingKeys,
		"If true, ignore any errors in templates when a field or map key is missing in the template. Only applies to golang and jsonpath output formats.")
	set.BoolVar(&f.ShowManagedFields, "show-managed-fields", f.ShowManagedFields,
		"If true, keep the managedFields when printing objects in JSON or YAML format.")
}

func (f *Flags) allowed(string) []string {
	return append(WithKYAML("json", "yaml", "name", "go-template", "go-template-file", "template", "templatefile",
		"jsonpath", "jsonpath-as-json", "jsonpath-file"), f.Extra...)
}

// WithKYAML are the formats, and kyaml, which KUBECTL_KYAML=false takes away.
func WithKYAML(formats ...string) []string {
	if strings.EqualFold(os.Getenv("KUBECTL_KYAML"), "false") {
		return formats
	}
	return append(formats, "kyaml")
}

// NoFormatError says that the output format is unknown.
type NoFormatError struct {
	Format  string
	Allowed []string
}

func (e *NoFormatError) Error() string {
	names := append([]string{}, e.Allowed...)
	sort.Strings(names)
	return fmt.Sprintf("unable to match a printer suitable for the output format %q, allowed formats are: %s", e.Format,
		strings.Join(names, ","))
}

// Printer returns the printer of -o. Without -o, it prints "TYPE/NAME operation" ("pod/x created"); with -o name only
// the name. All others write data, which an escaping writer passes on as it is.
func (f *Flags) Printer(operation string) (Printer, error) {
	p, err := f.printer(operation)
	if err != nil || f.Output == "name" || f.Output == "" && f.Template == "" {
		return p, err
	}
	return Func(func(obj runtime.Object, w io.Writer) error { return p.Print(obj, Raw(w)) }), nil
}

func (f *Flags) printer(operation string) (Printer, error) {
	format, arg, _ := strings.Cut(f.Output, "=")
	if format == "" && f.Template != "" {
		format = "go-template"
	}
	var p Printer
	var err error
	if format == "kyaml" && !slices.Contains(WithKYAML(), format) {
		return nil, &NoFormatError{f.Output, f.allowed(",")}
	}
	switch format {
	case "":
		return Name(operation), nil
	case "name":
		return Name(""), nil
	case "json":
		p = Func(JSON)
	case "yaml":
		p = f.separated(YAML)
	case "kyaml":
		p = Func(KYAML) // which begins each document with a separator
	case "jsonpath", "jsonpath-file", "jsonpath-as-json":
		return f.jsonPath(format, arg)
	case "go-template", "template", "go-template-file", "templatefile":
		return f.goTemplate(format, arg)
	default:
		return nil, &NoFormatError{f.Output, f.allowed(",")}
	}
	if !f.ShowManagedFields {
		p = withoutManagedFields{p}
	}
	return p, err
}

// Name prints "TYPE/NAME", followed by the operation if there is one. Items of lists are printed one by one.
func Name(operation string) Printer {
	return Func(func(obj runtime.Object, w io.Writer) error {
		return eachItem(obj, func(o runtime.Object) error {
			name := "<unknown>"
			if a, err := meta.Accessor(o); err == nil && a.GetName() != "" {
				name = a.GetName()
			}
			gvk := o.GetObjectKind().GroupVersionKind()
			kind := strings.ToLower(gvk.Kind)
			if gvk.Group != "" {
				kind += "." + gvk.Group
			}
			if operation != "" {
				name += " " + operation
			}
			_, err := fmt.Fprintf(w, "%s/%s\n", kind, name)
			return err
		})
	})
}

func eachItem(obj runtime.Object, do func(runtime.Object) error) error {
	if !meta.IsListType(obj) {
		return do(obj)
	}
	items, err := meta.ExtractList(obj)
	if err != nil {
		return err
	}
	for _, o := range items {
		if err := do(o); err != nil {
			return err
		}
	}
	return nil
}

// JSON prints obj indented by four spaces.
func JSON(obj runtime.Object, w io.Writer) error {
	data, err := json.MarshalIndent(obj, "", "    ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", plainjson.Escape(data))
	return err
}

// YAML prints obj as one document, without a separator.
func YAML(obj runtime.Object, w io.Writer) error {
	data, err := Document(obj)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// Document returns an object as a YAML document, whatever text it has.
func Document(obj any) ([]byte, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(plainjson.Escape(data))
}

// KYAML prints obj in the part of YAML that quotes and braces everything, after a separator.
func KYAML(obj runtime.Object, w io.Writer) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	return (&kyaml.Encoder{}).FromYAML(bytes.NewReader(plainjson.Escape(data)), w)
}

// separated separates the documents that write, and other printers of f, write.
func (f *Flags) separated(write Func) Printer {
	return Func(func(obj runtime.Object, w io.Writer) error {
		if f.documents++; f.documents > 1 {
			fmt.Fprintln(w, "---")
		}
		return write(obj, w)
	})
}

// withoutManagedFields hides the bookkeeping of appliers.
type withoutManagedFields struct{ next Printer }

func (p withoutManagedFields) Print(obj runtime.Object, w io.Writer) error {
	obj = obj.DeepCopyObject()
	if u, ok := obj.(*unstructured.Unstructured); ok {
		clearUnstructured(u.Object)
		return p.next.Print(obj, w)
	}
	if meta.IsListType(obj) {
		_ = eachItem(obj, func(o runtime.Object) error { clearManaged(o); return nil })
	} else {
		clearManaged(obj)
	}
	return p.next.Print(obj, w)
}

// clearUnstructured clears an object, or a list's items.
func clearUnstructured(object map[string]any) {
	unstructured.RemoveNestedField(object, "metadata", "managedFields")
	items, _ := object["items"].([]any)
	for _, i := range items {
		if m, ok := i.(map[string]any); ok {
			unstructured.RemoveNestedField(m, "metadata", "managedFields")
		}
	}
}

func clearManaged(o runtime.Object) {
	if a, err := meta.Accessor(o); err == nil {
		a.SetManagedFields(nil)
	}
}
