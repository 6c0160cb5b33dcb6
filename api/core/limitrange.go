package core

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec"
	"bonsai/api/quantity"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

func limitRangeRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("LimitRange"), Resource: "limitranges", Singular: "limitrange",
		Namespaced:  true,
		ShortNames:  []string{"limits"},
		StoragePath: "limitranges",
		New:         resources.Make[corev1.LimitRange],
		Strategy: resources.Typed[*corev1.LimitRange]{
			Default:        defaultLimitRange,
			Validate:       validateLimitRange,
			ValidateUpdate: func(obj, _ *corev1.LimitRange) field.ErrorList { return validateLimitRange(obj) },
			CreateOnUpdate: true,
		}.Strategy(),
		Columns: resources.NameAndCreated(),
		Cells:   resources.Cells(resources.NameAndCreatedCells[*corev1.LimitRange]),
	}
}

// defaultLimitRange: a container's default limit is its maximum, its default request the default limit or else the
// minimum.
func defaultLimitRange(l *corev1.LimitRange) {
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		for _, list := range []corev1.ResourceList{item.Max, item.Min, item.Default, item.DefaultRequest,
			item.MaxLimitRequestRatio} {
			quantity.RoundUp(list)
		}
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		fill := func(dst *corev1.ResourceList, src corev1.ResourceList) {
			if *dst == nil {
				*dst = corev1.ResourceList{}
			}
			for name, q := range src {
				if _, ok := (*dst)[name]; !ok {
					(*dst)[name] = q.DeepCopy()
				}
			}
		}
		fill(&item.Default, item.Max)
		fill(&item.DefaultRequest, item.Default)
		fill(&item.DefaultRequest, item.Min)
	}
}

func validateLimitRange(l *corev1.LimitRange) field.ErrorList {
	var errs field.ErrorList
	types := sets.New[corev1.LimitType]()
	for i := range l.Spec.Limits {
		item, at := &l.Spec.Limits[i], field.NewPath("spec", "limits").Index(i)
		errs = append(errs, validate.QualifiedName(string(item.Type), at.Child("type"))...)
		if s := string(item.Type); len(validation.IsQualifiedName(s)) == 0 && !strings.Contains(s, "/") &&
			item.Type != corev1.LimitTypePod && item.Type != corev1.LimitTypeContainer &&
			item.Type != corev1.LimitTypePersistentVolumeClaim {
			errs = append(errs, field.Invalid(at.Child("type"), item.Type,
				"must be a standard limit type or fully qualified"))
		}
		if types.Has(item.Type) {
			errs = append(errs, field.Duplicate(at.Child("type"), item.Type))
		}
		types.Insert(item.Type)
		if item.Type == corev1.LimitTypePod {
			if len(item.Default) > 0 {
				errs = append(errs, field.Forbidden(at.Child("default"), "may not be specified when `type` is 'Pod'"))
			}
			if len(item.DefaultRequest) > 0 {
				errs = append(errs, field.Forbidden(at.Child("defaultRequest"),
					"may not be specified when `type` is 'Pod'"))
			}
		}
		if item.Type == corev1.LimitTypePersistentVolumeClaim {
			_, most := item.Max[corev1.ResourceStorage]
			_, least := item.Min[corev1.ResourceStorage]
			if !most && !least {
				errs = append(errs, field.Required(at.Child("limits"),
					"either minimum or maximum storage value is required, but neither was provided"))
			}
		}
		errs = append(errs, validateLimitOrder(item, at)...)
	}
	return errs
}

// validateLimitOrder: min ≤ defaultRequest ≤ default ≤ max, and ratios of at least one. As in Kubernetes, an amount may
// be negative or a fraction of something counted: it then limits nothing, or what pods cannot ask for.
func validateLimitOrder(item *corev1.LimitRangeItem, path *field.Path) field.ErrorList {
	validateName := quantity.ValidateName
	if item.Type == corev1.LimitTypeContainer || item.Type == corev1.LimitTypePod {
		validateName = podspec.ValidateContainerResourceName
	}
	var errs field.ErrorList
	names := sets.New[corev1.ResourceName]()
	for _, l := range []struct {
		name string
		list corev1.ResourceList
	}{{"max", item.Max}, {"min", item.Min}, {"default", item.Default}, {"defaultRequest", item.DefaultRequest},
		{"maxLimitRequestRatio", item.MaxLimitRequestRatio}} {
		for n := range l.list {
			names.Insert(n)
			at := path.Child(l.name).Key(string(n))
			errs = append(errs, validateName(n, at)...)
		}
	}
	for _, n := range sets.List(names) {
		order := func(child string, shown, small, large corev1.ResourceList, smallName, largeName string) {
			a, ok := small[n]
			b, ok2 := large[n]
			if ok && ok2 && a.Cmp(b) > 0 {
				value := shown[n]
				errs = append(errs, field.Invalid(path.Child(child).Key(string(n)), value.String(),
					fmt.Sprintf("%s value %s is greater than %s value %s", smallName, a.String(), largeName,
						b.String())))
			}
		}
		order("min", item.Min, item.Min, item.Max, "min", "max")
		order("defaultRequest", item.DefaultRequest, item.Min, item.DefaultRequest, "min", "default request")
		order("defaultRequest", item.DefaultRequest, item.DefaultRequest, item.Max, "default request", "max")
		order("defaultRequest", item.DefaultRequest, item.DefaultRequest, item.Default, "default request",
			"default limit")
		order("default", item.Min, item.Min, item.Default, "min", "default")
		order("default", item.Max, item.Default, item.Max, "default", "max")
		if ratio, ok := item.MaxLimitRequestRatio[n]; ok && ratio.Cmp(resource.MustParse("1")) < 0 {
			errs = append(errs, field.Invalid(path.Child("maxLimitRequestRatio").Key(string(n)), ratio.String(),
				fmt.Sprintf("ratio %s is less than 1", ratio.String())))
		}
	}
	return errs
}
