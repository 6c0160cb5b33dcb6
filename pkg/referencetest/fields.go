package referencetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Field is one field of a configuration file.
type Field struct {
	Path, Type, Default string
}

// Fields returns the fields of a configuration by its tags of that key ("json" or "yaml"), in the order of the type. A
// struct is taken apart unless it is written as one value, such as a duration, or is at a path of whole. defaults is a
// value of the type (or a pointer to one) whose fields show what holds without a file.
func Fields(defaults any, tag string, whole ...string) []Field {
	v := reflect.Indirect(reflect.ValueOf(defaults))
	return walk(v, tag, "", whole)
}

func walk(v reflect.Value, tag, prefix string, whole []string) (out []Field) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get(tag), ",")
		embedded := f.Anonymous && tag == "json" && name == "" && f.Type.Kind() == reflect.Struct
		if (embedded || strings.Contains(options, "inline")) && f.Name != "TypeMeta" {
			out = append(out, walk(v.Field(i), tag, prefix, whole)...)
		}
		if name == "" || name == "-" {
			continue
		}
		path, inner := prefix+name, f.Type
		suffix := ""
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				suffix = "[]"
			}
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && !slices.Contains(whole, path) &&
			!reflect.PointerTo(inner).Implements(reflect.TypeFor[json.Marshaler]()) {
			at := reflect.New(inner).Elem()
			if suffix == "" && !(f.Type.Kind() == reflect.Pointer && v.Field(i).IsNil()) {
				at = reflect.Indirect(v.Field(i))
			}
			out = append(out, walk(at, tag, path+suffix+".", whole)...)
			continue
		}
		out = append(out, Field{Path: path, Type: typeName(f.Type), Default: shown(v.Field(i))})
	}
	return out
}

// typeName names a type in the words of a file.
func typeName(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return typeName(t.Elem())
	case t.Name() == "Duration":
		return "duration"
	case t.Name() == "Quantity", t.Name() == "QuantityValue":
		return "quantity"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "bytes (base64)"
	case t.Kind() == reflect.Slice:
		return "list of " + typeName(t.Elem())
	case t.Kind() == reflect.Map:
		return "map of " + typeName(t.Elem())
	case t.Kind() == reflect.Struct:
		return t.Name()
	case t.Kind() == reflect.Interface:
		return "any"
	}
	return strings.TrimSuffix(strings.TrimSuffix(t.Kind().String(), "64"), "32")
}

// shown is a value as a file has it; "" for nothing.
func shown(v reflect.Value) string {
	if v.IsZero() && v.Kind() != reflect.Bool {
		return ""
	}
	out, err := json.Marshal(v.Interface())
	if err != nil || string(out) == "null" || string(out) == "[]" || string(out) == "{}" || string(out) == `""` {
		return ""
	}
	return strings.Trim(string(out), `"`)
}

// Configuration holds docs/reference/configuration/COMPONENT.md against the fields of a configuration file. effects
// says for a path, or for all paths below it, why the field has no effect or which values it does not take; kind names
// the file's kind and version, pkg the package of the test; note is a sentence about the fields without effect.
func Configuration(t *testing.T, component, kind, pkg, note string, fields []Field, effects map[string]string) {
	t.Helper()
	used := map[string]bool{}
	var rows [][]string
	for _, f := range fields {
		effect := ""
		for at := strings.ReplaceAll(f.Path, "[]", ""); effect == ""; at = at[:strings.LastIndexByte(at, '.')] {
			effect, used[at] = effects[at], true
			if !strings.Contains(at, ".") {
				break
			}
		}
		rows = append(rows, []string{Code(f.Path), f.Type, Code(f.Default), effect})
	}
	for path := range effects {
		if !used[path] {
			t.Errorf("%s is not a field of %s", path, kind)
		}
	}
	Check(t, "configuration/"+component+".md", fmt.Sprintf("# Configuration file of %s\n\n"+
		"The fields of %s, made from its type by `go test %s -run TestReference -args -update`. "+
		"What a field means is in Kubernetes' documentation. "+
		"An empty last column means that the field works. %s\n\n", component, kind, pkg, note)+
		Table([]string{"field", "type", "default", "effect"}, rows))
}
