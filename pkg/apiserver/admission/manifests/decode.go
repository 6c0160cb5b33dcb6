package manifests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"bonsai/api/admissionregistration"
	"bonsai/pkg/docbounds"
)

// document bounds one document of a file, which has at most 1 MiB.
var document = docbounds.Bounds{Bytes: 1 << 20, Values: 100_000, Depth: 50}

// decode reads the objects of a file. Errors are in Kubernetes' words.
func (d *Directory) decode(f file) (out []*object, err error) {
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(f.text)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if err := docbounds.YAML(doc, document); err != nil {
			return nil, err
		}
		text, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			return nil, runtime.NewStrictDecodingError([]error{err})
		}
		if string(text) == "null" { // nothing between two separators
			continue
		}
		found, err := d.decodeOne(f, text)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
}

// list is a list of objects of any kind.
type list struct {
	metav1.TypeMeta
	metav1.ListMeta `json:"metadata"`
	Items           []json.RawMessage `json:"items"`
}

// decodeOne reads a document: an object, or a list of them.
func (d *Directory) decodeOne(f file, text []byte) ([]*object, error) {
	var of metav1.TypeMeta
	if err := json.Unmarshal(text, &of); err != nil {
		return nil, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	gvk := of.GroupVersionKind()
	element, isList := strings.CutSuffix(gvk.Kind, "List")
	switch {
	case of.Kind == "":
		return nil, runtime.NewMissingKindErr(string(text))
	case of.APIVersion == "":
		return nil, runtime.NewMissingVersionErr(string(text))
	case isList && (gvk.Group == "" || d.kind(gvk.GroupVersion().WithKind(element)) >= 0):
		return d.decodeList(f, text)
	}
	o, err := d.decodeObject(f, text, gvk)
	if err != nil {
		return nil, err
	}
	return []*object{o}, nil
}

// decodeList reads the objects of a list. A list of a kind names it once for all.
func (d *Directory) decodeList(f file, text []byte) (out []*object, err error) {
	var l list
	if err := strictly(text, &l); err != nil {
		return nil, err
	}
	for _, item := range l.Items {
		gvk := l.GroupVersionKind()
		if gvk.Group == "" {
			found, err := d.decodeOne(f, item)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
			continue
		}
		o, err := d.decodeObject(f, item, gvk.GroupVersion().WithKind(strings.TrimSuffix(gvk.Kind, "List")))
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// kind is the index of a kind, -1 if the plug-in does not take it.
func (d *Directory) kind(gvk schema.GroupVersionKind) int {
	for i, k := range d.Kinds {
		if k.Row.GVK == gvk {
			return i
		}
	}
	return -1
}

// decodeObject reads an object, as the API would take it.
func (d *Directory) decodeObject(f file, text []byte, gvk schema.GroupVersionKind) (*object, error) {
	i := d.kind(gvk)
	switch {
	case i < 0 && gvk.Group == admissionregistrationv1.GroupName:
		return nil, fmt.Errorf("unsupported resource type *%s.%s", gvk.Version, gvk.Kind)
	case i < 0:
		return nil, fmt.Errorf("no kind %q is registered for version %q", gvk.Kind, gvk.GroupVersion())
	}
	row := d.Kinds[i].Row
	obj := row.New()
	if err := strictly(text, obj); err != nil {
		return nil, err
	}
	access, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	s := &row.Strategy
	if s.Default != nil {
		s.Default(obj)
	}
	faults := validation.ValidateObjectMetaAccessor(access, false, validation.NameIsDNSSubdomain,
		field.NewPath("metadata"))
	if s.Validate != nil {
		faults = append(faults, s.Validate(obj)...)
	}
	name := access.GetName()
	if len(faults) > 0 {
		return nil, fmt.Errorf("%s %q: %w", gvk.Kind, name, faults.ToAggregate())
	}
	if !strings.HasSuffix(name, admissionregistration.StaticSuffix) {
		return nil, fmt.Errorf("%q in file %q must have a name ending with %q", name, f.path,
			admissionregistration.StaticSuffix)
	}
	if err := alone(f.path, obj); err != nil {
		return nil, err
	}
	return &object{kind: i, obj: obj, name: name, file: f.path}, nil
}

// strictly reads a document, and fails for a field that there is not, or twice.
func strictly(text []byte, into any) error {
	strict, err := sigsjson.UnmarshalStrict(text, into)
	if err != nil {
		return err
	}
	if len(strict) > 0 {
		return runtime.NewStrictDecodingError(strict)
	}
	return nil
}
