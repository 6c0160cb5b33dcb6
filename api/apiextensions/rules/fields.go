package rules

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"bonsai/api/apiextensions/structural"
)

// reasons are those that a rule may give for what it refuses.
var reasons = [...]apiextensionsv1.FieldValueErrorReason{
	apiextensionsv1.FieldValueDuplicate, apiextensionsv1.FieldValueForbidden, apiextensionsv1.FieldValueInvalid,
	apiextensionsv1.FieldValueRequired,
}

// checkFields checks what a rule of the value p describes says besides its expressions.
func checkFields(p *apiextensionsv1.JSONSchemaProps, r *apiextensionsv1.ValidationRule,
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	lines := func(s string) bool { return strings.ContainsAny(s, "\n\r") }
	rule := strings.TrimSpace(r.Rule)
	if rule == "" {
		errs = append(errs, field.Required(path.Child("rule"), "rule is not specified"))
	}
	if r.Message != "" && strings.TrimSpace(r.Message) == "" {
		errs = append(errs, field.Invalid(path.Child("message"), r.Message, "must be non-empty if specified"))
	} else if lines(strings.TrimSpace(r.Message)) {
		errs = append(errs, field.Invalid(path.Child("message"), r.Message, "must not contain line breaks"))
	} else if lines(rule) && r.Message == "" {
		errs = append(errs, field.Required(path.Child("message"),
			"message must be specified if rule contains line breaks"))
	}
	if r.MessageExpression != "" && strings.TrimSpace(r.MessageExpression) == "" {
		errs = append(errs, field.Required(path.Child("messageExpression"),
			"messageExpression must be non-empty if specified"))
	}
	if r.Reason != nil && !slices.Contains(reasons[:], *r.Reason) {
		errs = append(errs, field.NotSupported(path.Child("reason"), *r.Reason, reasons[:]))
	}
	if at := r.FieldPath; at != "" {
		path := path.Child("fieldPath")
		if strings.TrimSpace(at) == "" {
			errs = append(errs, field.Invalid(path, at, "must be non-empty if specified"))
		}
		if lines(at) {
			errs = append(errs, field.Invalid(path, at, "must not contain line breaks"))
		}
		if !leads(p, at) {
			errs = append(errs, field.Invalid(path, at, "must be a valid path"))
		}
	}
	return errs
}

// leads reports whether a path leads to a field of what p describes.
func leads(p *apiextensionsv1.JSONSchemaProps, text string) bool {
	names, ok := split(text)
	for _, name := range names {
		if property, ok := p.Properties[name]; ok {
			p = &property
		} else if a := p.AdditionalProperties; a != nil && a.Schema != nil {
			p = a.Schema
		} else {
			return false
		}
	}
	return ok
}

// child is the path of what stands below path at a rule's fieldPath, which leads to something.
func child(s *structural.Schema, path *field.Path, text string) *field.Path {
	names, _ := split(text)
	for _, name := range names {
		if property := s.Property(name); property != nil {
			path, s = path.Child(name), property
		} else {
			path, s = path.Key(name), s.AdditionalProperties()
		}
	}
	return path
}

// split reads a path relative to a value: ".a['b.c'].d".
func split(text string) (names []string, ok bool) {
	for text != "" {
		name, rest, ok := next(text)
		if !ok {
			return nil, false
		}
		names, text = append(names, name), rest
	}
	return names, len(names) > 0
}

// next cuts the first name off a path: ".name", escaped as in CEL, or "['name']".
func next(text string) (name, rest string, ok bool) {
	if in, ok := strings.CutPrefix(text, "['"); ok {
		var b strings.Builder
		for i := 0; i < len(in); i++ {
			switch {
			case in[i] == '\\' && i+1 < len(in):
				i++
				b.WriteByte(in[i])
			case strings.HasPrefix(in[i:], "']"):
				return b.String(), in[i+2:], true
			default:
				b.WriteByte(in[i])
			}
		}
		return "", text, false
	}
	in, ok := strings.CutPrefix(text, ".")
	if !ok {
		return "", text, false
	}
	end := strings.IndexAny(in, ".[")
	if end < 0 {
		end = len(in)
	}
	name, rest = in[:end], in[end:]
	if unescaped, ok := apiservercel.Unescape(name); ok {
		name = unescaped
	}
	return name, rest, name != ""
}
