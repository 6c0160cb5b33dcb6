package write

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// Overrides are the flags --overrides and --override-type: a patch laid over a generated object.
type Overrides struct {
	Patch, Type string
}

// AddFlags adds them.
func (o *Overrides) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&o.Type, "override-type", "merge",
		"The method used to override the generated object: json, merge, or strategic.")
	set.StringVar(&o.Patch, "overrides", "",
		"An inline JSON override for the generated object. If this is non-empty, it is used to override the generated object. Requires that the object supply a valid apiVersion field.")
}

// Apply lays the patch over obj and decodes the result into out, an empty object of the same type.
func (o *Overrides) Apply(obj, out runtime.Object) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	patched, err := o.apply(data, out)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(patched, out); err != nil {
		return fmt.Errorf("decode the overridden object: %w", err)
	}
	return nil
}

func (o *Overrides) apply(data []byte, kind runtime.Object) ([]byte, error) {
	switch o.Type {
	case "merge", "":
		fragment, err := yaml.YAMLToJSON([]byte(o.Patch))
		if err != nil {
			return nil, errors.New("Invalid JSON Patch")
		}
		out, err := jsonpatch.MergePatch(data, fragment)
		if err != nil {
			return nil, errors.New("Invalid JSON Patch")
		}
		return out, nil
	case "json":
		p, err := jsonpatch.DecodePatch([]byte(o.Patch))
		if err != nil {
			return nil, fmt.Errorf("decode --overrides: %w", err)
		}
		return p.Apply(data)
	case "strategic":
		return strategicpatch.StrategicMergePatch(data, []byte(o.Patch), kind)
	}
	return nil, fmt.Errorf("invalid override type: %v", o.Type)
}
