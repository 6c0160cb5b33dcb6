package apiregistration

import (
	"fmt"
	"k8s.io/apimachinery/pkg/api/validation/path"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/api/validate"
)

// The bounds of priorities, which are shown as if they were excluded.
const (
	maxGroupPriority   = 20000
	maxVersionPriority = 1000
)

// validateService checks an APIService as clients write it.
func validateService(s *v1.APIService) field.ErrorList {
	var errs field.ErrorList
	name := s.Spec.Version + "." + s.Spec.Group
	check := func(is, of string) {
		// the registry reports names that no kind may have
		if is != "" && is != name && len(path.ValidatePathSegmentName(is, false)) == 0 {
			errs = append(errs, field.Invalid(field.NewPath("metadata", of), is,
				fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", name)))
		}
	}
	check(s.GenerateName, "generateName")
	check(s.Name, "name")
	spec := field.NewPath("spec")
	if s.Spec.Group == "" {
		if s.Spec.Version != "v1" {
			errs = append(errs, field.Required(spec.Child("group"),
				"only v1 may have an empty group and it better be legacy kube"))
		}
	} else {
		errs = append(errs, validate.Invalid(spec.Child("group"), s.Spec.Group,
			validation.IsDNS1123Subdomain(s.Spec.Group))...)
	}
	errs = append(errs, validate.Invalid(spec.Child("version"), s.Spec.Version,
		validation.IsDNS1035Label(s.Spec.Version))...)
	errs = append(errs, priority(spec.Child("groupPriorityMinimum"), s.Spec.GroupPriorityMinimum, maxGroupPriority)...)
	errs = append(errs, priority(spec.Child("versionPriority"), s.Spec.VersionPriority, maxVersionPriority)...)
	return append(errs, validateServer(&s.Spec, spec)...)
}

func priority(path *field.Path, value, limit int32) field.ErrorList {
	if value <= 0 || value > limit {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be positive and less than %d", limit))}
	}
	return nil
}

// validateServer checks where the server is and who vouches for it.
func validateServer(s *v1.APIServiceSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Service == nil {
		if len(s.CABundle) != 0 {
			errs = append(errs, field.Invalid(path.Child("caBundle"), fmt.Sprintf("%d bytes", len(s.CABundle)),
				"local APIServices may not have a caBundle"))
		}
		if s.InsecureSkipTLSVerify {
			errs = append(errs, field.Invalid(path.Child("insecureSkipTLSVerify"), true,
				"local APIServices may not have insecureSkipTLSVerify"))
		}
		return errs
	}
	at := path.Child("service")
	errs = append(errs, validate.Required(at.Child("namespace"), s.Service.Namespace)...)
	errs = append(errs, validate.Required(at.Child("name"), s.Service.Name)...)
	if p := s.Service.Port; p != nil {
		for _, message := range validation.IsValidPortNum(int(*p)) {
			errs = append(errs, field.Invalid(at.Child("port"), *p, "port is not valid: "+message))
		}
	}
	if s.InsecureSkipTLSVerify && len(s.CABundle) > 0 {
		errs = append(errs, field.Invalid(path.Child("insecureSkipTLSVerify"), true,
			"may not be true if caBundle is present"))
	}
	return errs
}

func validateStatus(s *v1.APIService) field.ErrorList {
	var errs field.ErrorList
	for i, c := range s.Status.Conditions {
		switch c.Status {
		case v1.ConditionTrue, v1.ConditionFalse, v1.ConditionUnknown:
		default:
			errs = append(errs, field.NotSupported(field.NewPath("status", "conditions").Index(i).Child("status"),
				c.Status,
				[]v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse, v1.ConditionUnknown}))
		}
	}
	return errs
}
