package structural

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// levelCheck checks a few keywords of a schema that depend on its level.
type levelCheck func(p *props, path *field.Path, as level) field.ErrorList

// structuralChecks are the checks of checkStructural, in the order of their errors.
var structuralChecks = [...]levelCheck{
	checkHasType, checkHasItems, checkRootIsNoMap, checkEmbedded, checkIntOrString, checkTypeMeta, checkMetadata,
}

// checkStructural returns why p and what is below it are not structural: one schema must give each value its type.
//
// Parts come before nested schemas, so that errors have upstream's order. Nested schemas have no level: checkAllNested
// has rules of its own for them.
func checkStructural(p *props, path *field.Path, as level) field.ErrorList {
	var errs field.ErrorList
	for _, check := range structuralChecks {
		errs = append(errs, check(p, path, as)...)
	}
	eachStructural(p, path, func(p *props, path *field.Path, as level) {
		errs = append(errs, checkStructural(p, path, as)...)
	})
	return append(errs, checkAllNested(p, path)...)
}

// preserves reports whether p keeps fields that it does not know.
func preserves(p *props) bool { return p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields }

// The root is always an object, since a Kubernetes object is one.
func checkHasType(p *props, path *field.Path, as level) field.ErrorList {
	at := path.Child("type")
	if as == rootLevel {
		switch p.Type {
		case "object":
			return nil
		case "":
			return field.ErrorList{field.Required(at, "must not be empty at the root")}
		}
		return field.ErrorList{field.Invalid(at, p.Type, "must be object at the root")}
	}
	// checkEmbedded has its own message for embedded resources. The other two keywords stand for a type.
	if p.Type != "" || p.XEmbeddedResource || p.XIntOrString || p.XPreserveUnknownFields != nil {
		return nil
	}
	if as == itemLevel {
		return field.ErrorList{field.Required(at, "must not be empty for specified array items")}
	}
	return field.ErrorList{field.Required(at, "must not be empty for specified object fields")}
}

// checkHasItems accepts a list of schemas, too: it is unsupported, and checkItemsSchema says so.
func checkHasItems(p *props, path *field.Path, _ level) field.ErrorList {
	if p.Type != "array" || p.Items != nil && (p.Items.Schema != nil || len(p.Items.JSONSchemas) > 0) {
		return nil
	}
	return field.ErrorList{field.Required(path.Child("items"), "must be specified")}
}

// The root has fixed fields, apiVersion, kind and metadata, which a map would describe with the schema of its values.
func checkRootIsNoMap(p *props, path *field.Path, as level) field.ErrorList {
	if as != rootLevel || p.AdditionalProperties == nil {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("additionalProperties"), "must not be used at the root")}
}

// Without properties and without preserving unknown fields, pruning would leave only apiVersion, kind and metadata of
// the resource.
func checkEmbedded(p *props, path *field.Path, _ level) field.ErrorList {
	if !p.XEmbeddedResource {
		return nil
	}
	errs := mustBe(p, path, "object", "must be object if x-kubernetes-embedded-resource is true")
	if !preserves(p) && len(p.Properties) == 0 {
		errs = append(errs, field.Required(path.Child("properties"), "must not be empty if "+
			"x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"))
	}
	if p.AdditionalProperties != nil {
		errs = append(errs, field.Forbidden(path.Child("additionalProperties"),
			"must not be used if x-kubernetes-embedded-resource is set"))
	}
	return errs
}

// A value of this keyword is a scalar, so keywords about the fields of an object contradict it.
func checkIntOrString(p *props, path *field.Path, _ level) field.ErrorList {
	if !p.XIntOrString {
		return nil
	}
	var errs field.ErrorList
	const message = "must be false if x-kubernetes-int-or-string is true"
	if preserves(p) {
		errs = append(errs, field.Invalid(path.Child("x-kubernetes-preserve-unknown-fields"), true, message))
	}
	if p.XEmbeddedResource {
		errs = append(errs, field.Invalid(path.Child("x-kubernetes-embedded-resource"), true, message))
	}
	return errs
}

// checkTypeMeta checks the types of apiVersion, kind and metadata, in the root and in embedded resources. The server
// reads and writes these fields itself, as a string or as ObjectMeta. A schema with another type could never be
// satisfied.
func checkTypeMeta(p *props, path *field.Path, as level) field.ErrorList {
	if as != rootLevel && !p.XEmbeddedResource {
		return nil
	}
	var errs field.ErrorList
	for _, f := range []struct{ name, typ string }{
		{"apiVersion", "string"}, {"kind", "string"}, {"metadata", "object"},
	} {
		if below, ok := p.Properties[f.name]; ok && below.Type != f.typ {
			at := path.Child("properties").Key(f.name).Child("type")
			errs = append(errs, field.Invalid(at, below.Type, "must be "+f.typ))
		}
	}
	return errs
}

// checkMetadata checks what the root says about metadata. It may restrict names, and nothing else, because the server
// knows what metadata is.
//
// The server itself reads and sets these three fields, so the schema may have no defaults for them either.
func checkMetadata(p *props, path *field.Path, as level) field.ErrorList {
	if as != rootLevel {
		return nil
	}
	var errs field.ErrorList
	at := path.Child("properties").Key("metadata")
	if meta, ok := p.Properties["metadata"]; ok && !restrictsOnlyNames(meta) {
		errs = append(errs, field.Forbidden(at,
			"must not specify anything other than name and generateName, but metadata is implicitly specified"))
	}
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		if below, ok := p.Properties[name]; ok {
			at := path.Child("properties").Key(name)
			errs = append(errs, checkNoDefaults(&below, at, "must not be set in top-level "+name)...)
		}
	}
	eachNested(p, path, func(nested *props, path *field.Path) {
		if _, ok := nested.Properties["metadata"]; ok {
			errs = append(errs, field.Forbidden(path.Child("properties").Key("metadata"),
				"must not be specified in a nested context"))
		}
	})
	return errs
}

// restrictsOnlyNames reports whether the schema of metadata has no other properties than names, and no keywords besides
// type and default, which other checks cover.
func restrictsOnlyNames(meta props) bool {
	for name := range meta.Properties {
		if name != "name" && name != "generateName" {
			return false
		}
	}
	// meta is a copy, which this function may change.
	meta.Type, meta.Default, meta.Properties = "", nil, nil
	return reflect.DeepEqual(meta, props{})
}

func checkNoDefaults(p *props, path *field.Path, message string) field.ErrorList {
	var errs field.ErrorList
	if p.Default != nil {
		errs = append(errs, field.Forbidden(path.Child("default"), message))
	}
	eachStructural(p, path, func(p *props, path *field.Path, _ level) {
		errs = append(errs, checkNoDefaults(p, path, message)...)
	})
	return errs
}

// checkAllNested checks the schemas of allOf, anyOf, oneOf and not in p. One pair of them may name types: the integer
// and the string of an anyOf, in p or in its first allOf.
//
// The test is by identity: slices p.AnyOf and p.AllOf hold the very schemas that eachNested visits.
func checkAllNested(p *props, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	typed := choosesIntOrString(p.AnyOf)
	firstTyped := len(p.AllOf) > 0 && choosesIntOrString(p.AllOf[0].AnyOf)
	eachNested(p, path, func(nested *props, path *field.Path) {
		may := typed && slices.Contains([]*props{&p.AnyOf[0], &p.AnyOf[1]}, nested)
		errs = append(errs, checkNested(nested, path, may, firstTyped && nested == &p.AllOf[0])...)
	})
	return errs
}

// choosesIntOrString reports whether the alternatives are the pair that may name types: integer and string, in this
// order.
func choosesIntOrString(anyOf []props) bool {
	return len(anyOf) == 2 &&
		reflect.DeepEqual(anyOf[0], props{Type: "integer"}) && reflect.DeepEqual(anyOf[1], props{Type: "string"})
}
