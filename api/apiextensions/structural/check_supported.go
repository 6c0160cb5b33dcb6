package structural

import (
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// keywordCheck checks one keyword of a schema, or a few that belong together.
type keywordCheck func(p *props, path *field.Path) field.ErrorList

// supportedChecks are the checks of checkSupported, in the order of their errors.
var supportedChecks = [...]keywordCheck{
	checkUnsupported, checkUniqueItems, checkAdditionalProperties, checkItemsSchema, checkType, checkPreserveUnknown,
	checkPattern, checkMapType, checkListType,
}

// checkSupported returns which keywords of OpenAPI or of its Kubernetes extensions are unsupported or have unsupported
// values, in p and below.
//
// It checks every schema, including nested ones and, unlike checkStructural, regardless of level. These are syntax
// rules of a single schema.
func checkSupported(p *props, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, check := range supportedChecks {
		errs = append(errs, check(p, path)...)
	}
	each(p, path, func(p *props, path *field.Path) { errs = append(errs, checkSupported(p, path)...) })
	return errs
}

// unsupported returns the keywords of OpenAPI in p that the compiled form does not have.
//
// The Go type of a CustomResourceDefinition can hold them, but upstream forbids them.
func unsupported(p *props) []string {
	var out []string
	add := func(is bool, name string) {
		if is {
			out = append(out, name)
		}
	}
	add(p.ID != "", "id")
	add(p.Ref != nil, "$ref")
	add(p.AdditionalItems != nil, "additionalItems")
	add(len(p.PatternProperties) > 0, "patternProperties")
	add(len(p.Definitions) > 0, "definitions")
	add(len(p.Dependencies) > 0, "dependencies")
	return out
}

func checkUnsupported(p *props, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range unsupported(p) {
		errs = append(errs, field.Forbidden(path.Child(name), name+" is not supported"))
	}
	return errs
}

// x-kubernetes-list-type: set is the alternative; lists.go finds its duplicates with a hash.
func checkUniqueItems(p *props, path *field.Path) field.ErrorList {
	if !p.UniqueItems {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("uniqueItems"),
		"uniqueItems cannot be set to true since the runtime complexity becomes quadratic")}
}

// additionalProperties: true beside properties passes: it restricts nothing.
func checkAdditionalProperties(p *props, path *field.Path) field.ErrorList {
	a := p.AdditionalProperties
	if a == nil || len(p.Properties) == 0 || a.Allows && a.Schema == nil {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("additionalProperties"),
		"additionalProperties and properties are mutual exclusive")}
}

func checkItemsSchema(p *props, path *field.Path) field.ErrorList {
	if p.Items == nil || len(p.Items.JSONSchemas) == 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("items"), "items must be a schema object and not an array")}
}

func checkType(p *props, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.Type == "null" {
		errs = append(errs,
			field.Forbidden(path.Child("type"), "type cannot be set to null, use nullable as an alternative"))
	}
	known := []string{"array", "boolean", "integer", "number", "object", "string"}
	if p.Type != "" && !slices.Contains(known, p.Type) {
		errs = append(errs, field.NotSupported(path.Child("type"), p.Type, known))
	}
	return errs
}

// Pruning is the default, so false would say nothing.
func checkPreserveUnknown(p *props, path *field.Path) field.ErrorList {
	if p.XPreserveUnknownFields == nil || *p.XPreserveUnknownFields {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("x-kubernetes-preserve-unknown-fields"), false,
		"must be true or undefined")}
}

// Compile limits the size of patterns (maxPatterns). Go's regular expressions take linear time, so a valid pattern
// cannot stall the server.
func checkPattern(p *props, path *field.Path) field.ErrorList {
	if p.Pattern == "" {
		return nil
	}
	if _, err := regexp.Compile(p.Pattern); err != nil {
		return field.ErrorList{field.Invalid(path.Child("pattern"), p.Pattern,
			fmt.Sprintf("must be a valid regular expression, but isn't: %v", err))}
	}
	return nil
}

func checkMapType(p *props, path *field.Path) field.ErrorList {
	if p.XMapType == nil {
		return nil
	}
	errs := mustBe(p, path, "object", "must be object if x-kubernetes-map-type is specified")
	if t := *p.XMapType; t != "atomic" && t != "granular" {
		errs = append(errs,
			field.NotSupported(path.Child("x-kubernetes-map-type"), t, []string{"atomic", "granular"}))
	}
	return errs
}

// mustBe checks that p has a type.
func mustBe(p *props, path *field.Path, typ, message string) field.ErrorList {
	switch p.Type {
	case typ:
		return nil
	case "":
		return field.ErrorList{field.Required(path.Child("type"), message)}
	}
	return field.ErrorList{field.Invalid(path.Child("type"), p.Type, message)}
}
