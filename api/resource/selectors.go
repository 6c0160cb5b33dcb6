package resource

import (
	"encoding/json"
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celenvironment "k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/dynamic-resource-allocation/cel"

	"bonsai/api/validate"
)

// validateSelectors checks what devices must be like. What was stored before is compiled with all that any stored
// expression may use.
func validateSelectors(list []resourcev1.DeviceSelector, stored map[string]bool, path *field.Path) field.ErrorList {
	errs := bound(path, len(list), resourcev1.DeviceSelectorsMaxSize)
	for i, s := range list[:min(len(list), resourcev1.DeviceSelectorsMaxSize)] {
		at := path.Index(i).Child("cel")
		if s.CEL == nil {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		errs = append(errs, validateExpression(s.CEL.Expression, stored[s.CEL.Expression], at.Child("expression"))...)
	}
	return errs
}

func validateExpression(text string, stored bool, path *field.Path) field.ErrorList {
	if len(text) > resourcev1.CELSelectorExpressionMaxLength {
		return field.ErrorList{field.TooLong(path, "", resourcev1.CELSelectorExpressionMaxLength)}
	}
	as := celenvironment.NewExpressions
	if stored {
		as = celenvironment.StoredExpressions
	}
	result := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true}).CompileCELExpression(text,
		cel.Options{EnvType: &as})
	switch {
	case result.Error != nil:
		return field.ErrorList{field.Invalid(path, text, result.Error.Detail)}
	case result.MaxCost > resourcev1.CELSelectorExpressionMaxCost:
		return field.ErrorList{field.Forbidden(path, "too complex, exceeds cost limit")}
	}
	return nil
}

// expressions are those of selectors.
func expressions(lists ...[]resourcev1.DeviceSelector) map[string]bool {
	out := map[string]bool{}
	for _, list := range lists {
		for _, s := range list {
			if s.CEL != nil {
				out[s.CEL.Expression] = true
			}
		}
	}
	return out
}

// bound checks how long a list is.
func bound(path *field.Path, n, most int) field.ErrorList {
	if n > most {
		return field.ErrorList{field.TooMany(path, n, most)}
	}
	return nil
}

// driverWarnings tells of a name that is taken for compatibility only.
func driverWarnings(name string, path *field.Path) []string {
	if name == strings.ToLower(name) {
		return nil
	}
	return []string{fmt.Sprintf("%s: driver names should be lowercase; %q contains uppercase characters", path, name)}
}

// validateDriver checks the name of a driver, in any case of letters.
func validateDriver(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	if len(name) > resourcev1.DriverNameMaxLength {
		errs = append(errs, field.TooLong(path, "", resourcev1.DriverNameMaxLength))
	}
	return append(errs, validate.Invalid(path, name, validation.IsDNS1123Subdomain(strings.ToLower(name)))...)
}

// validateDriverOf checks the name of a driver in an object that is not its own.
func validateDriverOf(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := validate.Invalid(path, name, content.IsDNS1123SubdomainCaseless(name))
	if len(name) > resourcev1.DriverNameMaxLength {
		errs = append(errs, field.TooLongCharacters(path, "", resourcev1.DriverNameMaxLength))
	}
	return errs
}

// validateConfiguration checks what is handed to a driver.
func validateConfiguration(c *resourcev1.DeviceConfiguration, path *field.Path) field.ErrorList {
	at := path.Child("opaque")
	if c.Opaque == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := validateDriverOf(c.Opaque.Driver, at.Child("driver"))
	return append(errs, validateJSON(&c.Opaque.Parameters, resourcev1.OpaqueParametersMaxLength,
		at.Child("parameters"))...)
}

// validateJSON checks an object that only a driver understands; it is not shown to who sent it.
func validateJSON(raw *runtime.RawExtension, most int, path *field.Path) field.ErrorList {
	switch {
	case len(raw.Raw) == 0:
		return field.ErrorList{field.Required(path, "")}
	case len(raw.Raw) > most:
		return field.ErrorList{field.TooLong(path, "", most)}
	}
	var obj map[string]any
	if json.Unmarshal(raw.Raw, &obj) != nil {
		return field.ErrorList{field.Invalid(path, "<value omitted>", "must be a valid JSON object")}
	}
	if obj == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

// validateFullName checks the name of an attribute that must have a domain.
func validateFullName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := validateQualifiedName(name, path)
	if !strings.Contains(name, "/") {
		errs = append(errs, field.Invalid(path, name,
			"a fully qualified name must be a domain and a name separated by a slash"))
	}
	return errs
}

// validateQualifiedName checks the name of an attribute or a capacity: a C identifier, which may have a domain before
// it.
func validateQualifiedName(name string, path *field.Path) field.ErrorList {
	domain, id, has := strings.Cut(name, "/")
	if !has {
		return validateID(name, path)
	}
	var errs field.ErrorList
	switch {
	case domain == "":
		errs = append(errs, field.Invalid(path, "", "the domain must not be empty"))
	default:
		if len(domain) > resourcev1.DeviceMaxDomainLength {
			errs = append(errs, field.TooLong(path, "", resourcev1.DeviceMaxDomainLength))
		}
		errs = append(errs, validate.Invalid(path, domain, validation.IsDNS1123Subdomain(domain))...)
	}
	if id == "" {
		return append(errs, field.Invalid(path, "", "the name must not be empty"))
	}
	return append(errs, validateID(id, path)...)
}

func validateID(id string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(id) > resourcev1.DeviceMaxIDLength {
		errs = append(errs, field.TooLong(path, "", resourcev1.DeviceMaxIDLength))
	}
	return append(errs, validate.Invalid(path, id, validation.IsCIdentifier(id))...)
}

// shown is text that says which fields of a union are set.
func shown(set []string) string { return fmt.Sprintf("{%s}", strings.Join(set, ", ")) }
