// Package validate checks single values that fields of many kinds hold: words, names, ports, selectors, paths. Each
// check returns one error for each thing that is wrong, in the API's own words.
package validate

import (
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// OneOf checks a required word.
func OneOf[T ~string](path *field.Path, value T, valid ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return OneOfOrEmpty(path, value, valid...)
}

// OneOfOrEmpty checks a word that may be left out.
func OneOfOrEmpty[T ~string](path *field.Path, value T, valid ...T) field.ErrorList {
	if value == "" {
		return nil
	}
	return Among(path, value, valid...)
}

// Among checks that a word is one of the valid ones. An empty word is valid only if the list has it.
func Among[T ~string](path *field.Path, value T, valid ...T) field.ErrorList {
	if slices.Contains(valid, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, valid)}
}

// Invalid turns the messages of a check of apimachinery's, none if all is well, into errors.
func Invalid(path *field.Path, value any, msgs []string) field.ErrorList {
	var errs field.ErrorList
	for _, m := range msgs {
		errs = append(errs, field.Invalid(path, value, m))
	}
	return errs
}

// QualifiedName checks a name with an optional domain: "example.com/ready".
func QualifiedName(name string, path *field.Path) field.ErrorList {
	return Invalid(path, name, validation.IsQualifiedName(name))
}

// LabelSelector checks the keys, operators and values of a selector; nil selects nothing and is valid.
func LabelSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, path)
}

// Required checks that a text is not empty.
func Required(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

// Immutable checks that a field stays. The error does not repeat the value, as upstream's does not for fields that it
// checks by their declaration.
func Immutable(now, was any, path *field.Path) field.ErrorList {
	if apiequality.Semantic.DeepEqual(now, was) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, nil, apivalidation.FieldImmutableErrorMsg)}
}

// Port checks a port given by number or by a container port's name.
func Port(p intstr.IntOrString, path *field.Path) field.ErrorList {
	if p.Type == intstr.Int {
		return Invalid(path, p.IntValue(), validation.IsValidPortNum(p.IntValue()))
	}
	return Invalid(path, p.StrVal, validation.IsValidPortName(p.StrVal))
}
