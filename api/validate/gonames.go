package validate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// GoNames is v as upstream's messages show values that it holds as types without JSON names, apart from the versions:
// with Go's names of fields, all of them, in the order of the type: {"Key":"a","Operator":"","Value":"x"}.
func GoNames(v any) json.Marshaler { return goNames{reflect.ValueOf(v)} }

type goNames struct{ v reflect.Value }

func (g goNames) MarshalJSON() ([]byte, error) {
	switch g.v.Kind() {
	case reflect.Pointer:
		if !g.v.IsNil() {
			return goNames{g.v.Elem()}.MarshalJSON()
		}
	case reflect.Slice:
		if !g.v.IsNil() {
			return list('[', ']', g.v.Len(), func(i int) (string, reflect.Value) { return "", g.v.Index(i) })
		}
	case reflect.Struct:
		return list('{', '}', g.v.NumField(), func(i int) (string, reflect.Value) {
			return fmt.Sprintf("%q:", g.v.Type().Field(i).Name), g.v.Field(i)
		})
	}
	return json.Marshal(g.v.Interface())
}

// list writes n members between two brackets, each after what stands before it.
func list(from, to byte, n int, member func(i int) (before string, v reflect.Value)) ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte(from)
	for i := range n {
		before, v := member(i)
		raw, err := goNames{v}.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(before)
		out.Write(raw)
	}
	out.WriteByte(to)
	return out.Bytes(), nil
}
