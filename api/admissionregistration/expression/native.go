package expression

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"
)

// maxNesting bounds how deep a value may be that an expression makes; JSON documents of that depth are refused
// everywhere.
const maxNesting = 1000

// Config is the apply configuration that an expression of type Object evaluated to, as a JSON document.
func Config(v ref.Val) (map[string]any, error) {
	o, ok := v.(*dynamic.ObjectVal)
	if !ok {
		return nil, fmt.Errorf("unsupported return type from ApplyConfiguration expression: %v", v.Type())
	}
	if err := o.CheckTypeNamesMatchFieldPathNames(); err != nil {
		return nil, fmt.Errorf("type mismatch: %w", err)
	}
	out, err := native(o, 0)
	if err != nil {
		return nil, err
	}
	doc, ok := out.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("unsupported return type from ApplyConfiguration expression: %v", v.Type())
	}
	return doc, nil
}

// operation is one of a JSON patch.
type operation struct {
	Op    string           `json:"op"`
	From  string           `json:"from,omitempty"`
	Path  string           `json:"path"`
	Value *json.RawMessage `json:"value,omitempty"`
}

// JSONPatch is the patch that an expression of type Patch evaluated to.
func JSONPatch(v ref.Val) ([]byte, error) {
	list, ok := v.(traits.Lister)
	if !ok {
		return nil, fmt.Errorf("type mismatch: JSON patch expression must evaluate to an array of JSONPatch but got %v",
			v.Type())
	}
	var out []operation
	for it := list.Iterator(); it.HasNext() == types.True; {
		next := it.Next()
		p, ok := next.(*mutation.JSONPatchVal)
		if !ok {
			return nil, fmt.Errorf("type mismatch: JSON patch expression must evaluate to an array of JSONPatch but got element of %v", next.Type())
		}
		o := operation{Op: p.Op, From: p.From, Path: p.Path}
		if p.Val != nil {
			if o2, ok := p.Val.(*dynamic.ObjectVal); ok {
				if err := o2.CheckTypeNamesMatchFieldPathNames(); err != nil {
					return nil, fmt.Errorf("type mismatch: %w", err)
				}
			}
			value, err := native(p.Val, 0)
			if err != nil {
				return nil, err
			}
			raw, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			o.Value = (*json.RawMessage)(&raw)
		}
		out = append(out, o)
	}
	if out == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(out)
}

// native makes a JSON value of a CEL value.
func native(v ref.Val, depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("a value is nested more than %d deep", maxNesting)
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		return int64(v), nil //nolint:gosec // as JSON has it
	case types.Double:
		return float64(v), nil
	case types.String:
		return string(v), nil
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), nil
	case types.Timestamp:
		return v.Time.Format(time.RFC3339Nano), nil
	case types.Duration:
		return v.Duration.String(), nil
	case *types.Optional:
		if !v.HasValue() {
			return nil, nil
		}
		return native(v.GetValue(), depth)
	case *dynamic.ObjectVal:
		fields, ok := v.Value().(map[string]any)
		if !ok {
			return nil, fmt.Errorf("unsupported value of type %v", v.Type())
		}
		return fields, nil
	case traits.Mapper:
		out := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			name, ok := key.Value().(string)
			if !ok {
				return nil, fmt.Errorf("unsupported map key of type %v", key.Type())
			}
			var err error
			if out[name], err = native(v.Get(key), depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case traits.Lister:
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			one, err := native(it.Next(), depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
		return out, nil
	}
	return nil, fmt.Errorf("unsupported value of type %v", v.Type())
}
