package apiextensions

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/apiextensions/rules"
)

// Validate returns the faults of a new definition. The caller validates its metadata as every object's. The messages
// are upstream's.
func Validate(crd *definition) field.ErrorList {
	errs := validateName(crd)
	errs = append(errs, validateSpec(crd)...)
	errs = append(errs, validateStored(crd)...)
	return append(errs, validateApproval(crd)...)
}

// validateUpdate returns the faults of an update. The group and the plural never change, because they make up the name.
// Scope and kind are free until the names are accepted and objects can exist (Established).
func validateUpdate(crd, old *definition) field.ErrorList {
	errs := validateSpec(crd)
	spec := field.NewPath("spec")
	fixed := func(now, was string, path *field.Path) {
		errs = append(errs, apivalidation.ValidateImmutableField(now, was, path)...)
	}
	fixed(crd.Spec.Group, old.Spec.Group, spec.Child("group"))
	fixed(crd.Spec.Names.Plural, old.Spec.Names.Plural, spec.Child("names", "plural"))
	if established(old) {
		fixed(string(crd.Spec.Scope), string(old.Spec.Scope), spec.Child("scope"))
		fixed(crd.Spec.Names.Kind, old.Spec.Names.Kind, spec.Child("names", "kind"))
	}
	errs = append(errs, validateStored(crd)...)
	if annotation := apiextensionsv1.KubeAPIApprovedAnnotation; crd.Annotations[annotation] !=
		old.Annotations[annotation] {
		errs = append(errs, validateApproval(crd)...)
	}
	return errs
}

// validateStatusUpdate returns the faults of a new status. The server's own controller writes it, and anybody with
// access to the subresource.
func validateStatusUpdate(crd, _ *definition) field.ErrorList {
	names, path := &crd.Status.AcceptedNames, field.NewPath("status", "acceptedNames")
	if names.Plural == "" && names.Kind == "" && names.Singular == "" && names.ListKind == "" &&
		len(names.ShortNames) == 0 {
		return nil
	}
	return validateNames(names, path)
}

// From this condition on, objects may exist in storage.
func established(crd *definition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// The name must be PLURAL.GROUP, which keeps two definitions from describing the same resource.
func validateName(crd *definition) field.ErrorList {
	var errs field.ErrorList
	want := crd.Spec.Names.Plural + "." + crd.Spec.Group
	check := func(name, of string) {
		if name != want {
			errs = append(errs, field.Invalid(field.NewPath("metadata", of), name,
				`must be spec.names.plural+"."+spec.group`))
		}
	}
	if crd.GenerateName != "" {
		check(crd.GenerateName, "generateName")
	}
	// A missing name is reported for every kind (validation of metadata).
	if crd.Name != "" { // the registry reports an empty name, for every kind
		check(crd.Name, "name")
	}
	return errs
}

// It runs on every write, also of an unchanged spec: rules of later versions apply to the next update.
func validateSpec(crd *definition) field.ErrorList {
	spec, path := &crd.Spec, field.NewPath("spec")
	errs := validateGroup(spec.Group, path.Child("group"))
	switch spec.Scope {
	case apiextensionsv1.ClusterScoped, apiextensionsv1.NamespaceScoped:
	case "":
		errs = append(errs, field.Required(path.Child("scope"), ""))
	default:
		errs = append(errs, field.NotSupported(path.Child("scope"), spec.Scope,
			[]string{string(apiextensionsv1.ClusterScoped), string(apiextensionsv1.NamespaceScoped)}))
	}
	if spec.PreserveUnknownFields {
		errs = append(errs, field.Invalid(path.Child("preserveUnknownFields"), true,
			"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"))
	}
	errs = append(errs, validateVersions(crd, path)...)
	errs = append(errs, required(&spec.Names, path.Child("names"))...)
	errs = append(errs, validateNames(&spec.Names, path.Child("names"))...)
	errs = append(errs, validateConversion(spec.Conversion, path.Child("conversion"))...)
	// A schema that all versions share is checked once, and its errors name the shared place (part).
	for v, at := range schemaPart.places(crd) {
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			if hasStatus(v) || schemaPart.isShared(crd) && slices.ContainsFunc(spec.Versions, func(v version) bool {
				return hasStatus(&v)
			}) {
				errs = append(errs, validateStatusRoot(v.Schema.OpenAPIV3Schema, at)...)
			}
			errs = append(errs, rules.Check(v.Schema.OpenAPIV3Schema, at)...)
		}
	}
	for v, at := range subPart.places(crd) {
		errs = append(errs, validateSubresources(v.Subresources, at)...)
	}
	for v, at := range columnPart.places(crd) {
		for i := range v.AdditionalPrinterColumns {
			errs = append(errs, validateColumn(&v.AdditionalPrinterColumns[i], at.Index(i))...)
		}
	}
	for v, at := range selectPart.places(crd) {
		if message := withoutSchema(crd, v); message != "" {
			errs = append(errs, field.Invalid(at, "", message))
			continue
		}
		errs = append(errs, validateSelectable(v, at)...)
	}
	return errs
}

func hasStatus(v *version) bool { return v.Subresources != nil && v.Subresources.Status != nil }

// withoutSchema returns why the selectable fields of a version have no schema to refer to, "" if they have. Kubernetes
// converts a definition to an internal form, where values that all versions share are stored once in the spec. The
// fields and the schema must be on the same level of that form.
func withoutSchema(crd *definition, v *version) string {
	none := v.Schema == nil || v.Schema.OpenAPIV3Schema == nil
	switch shared := selectPart.isShared(crd); {
	case len(v.SelectableFields) == 0:
	case shared && none:
		return "may only be set when validations.schema is included"
	case !shared && (none || schemaPart.isShared(crd)):
		return "may only be set when `version.schema.openAPIV3Schema` is not included"
	}
	return ""
}

// At least one dot keeps custom groups apart from the built-in ones, such as apps and batch.
func validateGroup(group string, path *field.Path) field.ErrorList {
	if group == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if errs := validation.IsDNS1123Subdomain(group); len(errs) > 0 {
		return field.ErrorList{field.Invalid(path, group, strings.Join(errs, ","))}
	}
	if !strings.Contains(group, ".") {
		return field.ErrorList{field.Invalid(path, group, "should be a domain with at least one dot")}
	}
	return nil
}

func validateVersions(crd *definition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	versions, at := crd.Spec.Versions, path.Child("versions")
	stored, unique := 0, map[string]bool{}
	var names []string // to show; whole versions would show megabytes of schemas
	if versions != nil {
		names = []string{}
	}
	for i := range versions {
		v := &versions[i]
		for _, msg := range validation.IsDNS1035Label(v.Name) {
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), v.Name, msg))
			// Upstream copies the first version's name to the deprecated spec.version, and reports both.
			if i == 0 && v.Name != "" {
				errs = append(errs, field.Invalid(path.Child("version"), v.Name, msg))
			}
		}
		if v.Storage {
			stored++
		}
		unique[v.Name], names = true, append(names, v.Name)
		errs = append(errs, validateDeprecation(v, at.Index(i))...)
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			errs = append(errs, field.Required(at.Index(i).Child("schema", "openAPIV3Schema"), ""))
		}
	}
	if len(unique) != len(versions) {
		errs = append(errs, field.Invalid(at, names, "must contain unique version names"))
	}
	if stored != 1 {
		errs = append(errs, field.Invalid(at, names, "must have exactly one version marked as storage version"))
	}
	return errs
}

func validateDeprecation(v *version, path *field.Path) field.ErrorList {
	if v.DeprecationWarning == nil {
		return nil
	}
	text, at := *v.DeprecationWarning, path.Child("deprecationWarning")
	// In bytes. Every answer of the version carries the text in a header.
	const most = 256
	switch {
	case !v.Deprecated:
		return field.ErrorList{field.Invalid(at, text, "can only be set for deprecated versions")}
	case text == "":
		return field.ErrorList{field.Invalid(at, text, "must not be an empty string")}
	case len(text) > most:
		return field.ErrorList{field.Invalid(at, text, fmt.Sprintf("must be <= %d characters long", most))}
	}
	for i, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return field.ErrorList{field.Invalid(at, text,
				fmt.Sprintf("must only contain printable UTF-8 characters; non-printable character found at index %d",
					i))}
		}
	}
	return nil
}

// required reports the names that a definition must have. Default has set singular and listKind, if it could.
func required(n *apiextensionsv1.CustomResourceDefinitionNames, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range []struct{ of, value string }{{"plural", n.Plural}, {"singular", n.Singular}, {"kind", n.Kind},
		{"listKind", n.ListKind}} {
		if name.value == "" {
			errs = append(errs, field.Required(path.Child(name.of), ""))
		}
	}
	return errs
}

// spec.names and status.acceptedNames have the same rules. Resource names are lower case because they are parts of
// URLs. Kinds may have upper case.
func validateNames(n *apiextensionsv1.CustomResourceDefinitionNames, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	label := func(value, prefix string, path *field.Path) {
		if msgs := validation.IsDNS1035Label(strings.ToLower(value)); prefix != "" && len(msgs) > 0 {
			errs = append(errs, field.Invalid(path, value, prefix+strings.Join(msgs, ",")))
		}
		if msgs := validation.IsDNS1035Label(value); prefix == "" && len(msgs) > 0 {
			errs = append(errs, field.Invalid(path, value, strings.Join(msgs, ",")))
		}
	}
	const mixed = "may have mixed case, but should otherwise match: "
	if n.Plural != "" {
		label(n.Plural, "", path.Child("plural"))
	}
	if n.Singular != "" {
		label(n.Singular, "", path.Child("singular"))
	}
	if n.Kind != "" {
		label(n.Kind, mixed, path.Child("kind"))
	}
	if n.ListKind != "" {
		label(n.ListKind, mixed, path.Child("listKind"))
	}
	for i, name := range n.ShortNames {
		label(name, "", path.Child("shortNames").Index(i))
	}
	for i, name := range n.Categories {
		label(name, "", path.Child("categories").Index(i))
	}
	if n.Kind != "" && n.Kind == n.ListKind {
		errs = append(errs, field.Invalid(path.Child("listKind"), n.ListKind, "kind and listKind may not be the same"))
	}
	return errs
}

// validateStored checks that every version in status.storedVersions is still in the spec. Objects may be stored in any
// of them, and could not be read without it. Upstream's documentation describes how to migrate and remove one.
func validateStored(crd *definition) field.ErrorList {
	path, stored := field.NewPath("status", "storedVersions"), crd.Status.StoredVersions
	if len(stored) == 0 {
		return field.ErrorList{field.Invalid(path, stored, "must have at least one stored version")}
	}
	var errs field.ErrorList
	if v := lastStorage(crd); v != "" && !slices.Contains(stored, v) {
		errs = append(errs, field.Invalid(path, stored, "must have the storage version "+v))
	}
	for i, name := range stored {
		if !slices.ContainsFunc(crd.Spec.Versions, func(v version) bool { return v.Name == name }) {
			errs = append(errs, field.Invalid(path.Index(i), name,
				fmt.Sprintf("missing from spec.versions; %s was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in %[1]s and removes %[1]s from status.storedVersions", name)))
		}
	}
	return errs
}

// lastStorage returns the last version marked as the storage version. validateVersions reports if there are several.
func lastStorage(crd *definition) (name string) {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			name = v.Name
		}
	}
	return name
}
