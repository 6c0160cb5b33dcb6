package main

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// deprecated is how descriptions mark what goes away.
var deprecated = regexp.MustCompile(`(?i)\bdeprecated\b`)

// fieldsSection has the types of the API and their fields. Our own types are those of the k8s.io modules, so that the
// two releases are compared.
func fieldsSection(current, next release) (section, error) {
	s := section{title: "Fields", against: "the same file of " + current.version +
		" (api/openapi-spec/swagger.json); our types are those of its modules"}
	old, _, err := fieldsOf(current)
	if err != nil {
		return s, err
	}
	all, descriptions, err := fieldsOf(next)
	if err != nil {
		return s, err
	}
	gates, err := gatesOf(next)
	if err != nil {
		return s, err
	}
	found, _ := compare(old, old, all)
	s.tasks = words{"Add", "Change", "Remove"}.lines(fold(found, "."), func(name string) string {
		return gatesIn(descriptions[name], gates)
	})
	s.remarks = []string{"A field of a gate that is off is dropped on write, as `DropDisabled` of api/podspec does."}
	return s, nil
}

// fieldsOf are the types and fields of a release, by type and "type.field", and the descriptions of the fields.
func fieldsOf(r release) (types, descriptions facts, err error) {
	types, descriptions = facts{}, facts{}
	return types, descriptions, r.add(types, "api/openapi-spec/swagger.json", func(f facts, data []byte) error {
		return f.definitions(data, descriptions)
	})
}

// definitions adds the definitions of an OpenAPI v2 document, and puts what it says about fields into descriptions.
// Names are short: core.v1.PodSpec.hostUsers. The groups' versions are facts, too, so that a new one is one line.
func (f facts) definitions(data []byte, descriptions facts) error {
	var document struct {
		Definitions map[string]struct {
			Properties map[string]map[string]any
			Required   []string
		}
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return err
	}
	for name, d := range document.Definitions {
		name = shortType(name)
		f[name] = ""
		if i := strings.LastIndex(name, "."); i > 0 {
			f[name[:i]] = ""
		}
		for field, p := range d.Properties {
			text := signature(p)
			if slices.Contains(d.Required, field) {
				text += " required"
			}
			description, _ := p["description"].(string)
			if deprecated.MatchString(description) {
				text += " deprecated"
			}
			f[name+"."+field], descriptions[name+"."+field] = text, description
		}
	}
	return nil
}

// shortType leaves out what all names of definitions have: io.k8s.api.core.v1.Pod is core.v1.Pod.
func shortType(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "io.k8s."), "api.")
}

// signature is a schema in short, without its description: "[]core.v1.Toleration x-kubernetes-list-type="atomic"".
func signature(schema map[string]any) string {
	text := "object"
	if ref, ok := schema["$ref"].(string); ok {
		text = shortType(strings.TrimPrefix(ref, "#/definitions/"))
	} else if items, ok := schema["items"].(map[string]any); ok {
		text = "[]" + signature(items)
	} else if values, ok := schema["additionalProperties"].(map[string]any); ok {
		text = "map of " + signature(values)
	} else if format, ok := schema["format"].(string); ok {
		text = format
	} else if plain, ok := schema["type"].(string); ok {
		text = plain
	}
	said := []string{"$ref", "items", "additionalProperties", "format", "type", "description"}
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		if slices.Contains(said, key) {
			continue
		}
		value, err := json.Marshal(schema[key])
		if err == nil { // it came from JSON
			text += " " + key + "=" + string(value)
		}
	}
	return text
}

var (
	// word is what may be the name of a feature gate in a description.
	word = regexp.MustCompile(`\b[A-Z][A-Za-z0-9]+\b`)
	// gate is how a description says that it speaks of one. Kinds have the same names: ClusterTrustBundle.
	gate = regexp.MustCompile(`(?i)\b(?:feature)?gates?\b`)
)

// gatesIn says which feature gates a description names.
func gatesIn(description string, gates facts) string {
	if !gate.MatchString(description) {
		return ""
	}
	var named []string
	for _, w := range word.FindAllString(description, -1) {
		if text, ok := gates[w]; ok {
			named = append(named, "gate "+w+" "+text)
		}
	}
	slices.Sort(named)
	if named = slices.Compact(named); len(named) == 0 {
		return ""
	}
	return " (" + strings.Join(named, "; ") + ")"
}
