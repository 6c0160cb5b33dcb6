package resource

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

func resourceSliceRow(now func() time.Time) resources.Row {
	spec := resourcev1.ResourceSliceSpec{}.SwaggerDoc()
	return resources.Row{
		GVK: resourcev1.SchemeGroupVersion.WithKind("ResourceSlice"), Resource: "resourceslices",
		Singular:    "resourceslice",
		StoragePath: "resourceslices",
		New:         resources.Make[resourcev1.ResourceSlice],
		Strategy: resources.Typed[*resourcev1.ResourceSlice]{
			ReturnDeleted: true,
			PrepareCreate: func(s *resourcev1.ResourceSlice) {
				setTaintTimes(s, now)
				dropDisabledSlice(s, nil)
			},
			PrepareUpdate: func(obj, old *resourcev1.ResourceSlice) {
				setTaintTimes(obj, now)
				dropDisabledSlice(obj, old)
			},
			Validate:       validateSlice,
			ValidateUpdate: validateSliceUpdate,
			Warnings: func(s, _ *resourcev1.ResourceSlice) []string {
				return driverWarnings(s.Spec.Driver, field.NewPath("spec", "driver"))
			},
			SpecChanged: func(obj, old *resourcev1.ResourceSlice) bool {
				return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
			},
		}.Strategy(),
		FieldNames: []string{resourcev1.ResourceSliceSelectorNodeName, resourcev1.ResourceSliceSelectorDriver,
			resourcev1.ResourceSliceSelectorPoolName},
		Fields: resources.Fields(func(s *resourcev1.ResourceSlice) fields.Set {
			return fields.Set{resourcev1.ResourceSliceSelectorNodeName: deref(s.Spec.NodeName),
				resourcev1.ResourceSliceSelectorDriver:   s.Spec.Driver,
				resourcev1.ResourceSliceSelectorPoolName: s.Spec.Pool.Name}
		}),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Node", spec["nodeName"]),
			resources.Column("Driver", spec["driver"]),
			resources.Column("Pool", resourcev1.ResourcePool{}.SwaggerDoc()["name"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(s *resourcev1.ResourceSlice, now time.Time) []any {
			return []any{s.Name, deref(s.Spec.NodeName), s.Spec.Driver, s.Spec.Pool.Name,
				resources.Age(s.CreationTimestamp, now)}
		}),
	}
}

// setTaintTimes says of taints that do not say it since when they are there.
func setTaintTimes(s *resourcev1.ResourceSlice, now func() time.Time) {
	if now == nil {
		return
	}
	for i := range s.Spec.Devices {
		for j := range s.Spec.Devices[i].Taints {
			if t := &s.Spec.Devices[i].Taints[j]; t.TimeAdded == nil {
				at := metav1.NewTime(now()).Rfc3339Copy()
				t.TimeAdded = &at
			}
		}
	}
}

func validateSlice(s *resourcev1.ResourceSlice) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateDriver(s.Spec.Driver, path.Child("driver"))
	errs = append(errs, validatePool(&s.Spec.Pool, path.Child("pool"))...)
	errs = append(errs, validateNodes(&s.Spec, path)...)
	if s.Spec.SharedCounters != nil && s.Spec.Devices != nil {
		errs = append(errs, field.Invalid(path, "", "only one of `sharedCounters` or `devices` is allowed"))
	}
	perDevice := s.Spec.PerDeviceNodeSelection != nil && *s.Spec.PerDeviceNodeSelection
	errs = append(errs, validateSliceDevices(s.Spec.Devices, perDevice, path.Child("devices"))...)
	return append(errs, validateSharedCounters(s.Spec.SharedCounters, path.Child("sharedCounters"))...)
}

func validateSliceUpdate(obj, old *resourcev1.ResourceSlice) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateSlice(obj)
	errs = append(errs, apivalidation.ValidateImmutableField(obj.Spec.NodeName, old.Spec.NodeName,
		path.Child("nodeName"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(obj.Spec.Driver, old.Spec.Driver, path.Child("driver"))...)
	return append(errs, apivalidation.ValidateImmutableField(obj.Spec.Pool.Name, old.Spec.Pool.Name,
		path.Child("pool", "name"))...)
}

func validatePool(p *resourcev1.ResourcePool, path *field.Path) field.ErrorList {
	errs := validatePoolName(p.Name, path.Child("name"))
	if p.ResourceSliceCount <= 0 {
		errs = append(errs, field.Invalid(path.Child("resourceSliceCount"), p.ResourceSliceCount,
			"must be greater than zero"))
	}
	if p.Generation < 0 {
		errs = append(errs, field.Invalid(path.Child("generation"), p.Generation,
			"must be greater than or equal to zero"))
	}
	return errs
}

// validatePoolName checks DNS subdomains with slashes between them.
func validatePoolName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	if len(name) > resourcev1.PoolNameMaxLength {
		errs = append(errs, field.TooLong(path, "", resourcev1.PoolNameMaxLength))
	}
	for part := range strings.SplitSeq(name, "/") {
		errs = append(errs, validate.Invalid(path, part, validation.IsDNS1123Subdomain(part))...)
	}
	return errs
}

// validateNodes checks that a slice says in one way on which nodes its devices are.
func validateNodes(s *resourcev1.ResourceSliceSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var set []string
	if n := s.NodeName; n != nil {
		set = append(set, "`nodeName`")
		errs = append(errs, validate.Invalid(path.Child("nodeName"), *n,
			apivalidation.NameIsDNSSubdomain(*n, false))...)
	}
	if s.NodeSelector != nil {
		set = append(set, "`nodeSelector`")
		errs = append(errs, validateNodeSelector(s.NodeSelector, path.Child("nodeSelector"))...)
	}
	if s.AllNodes != nil {
		set = append(set, "`allNodes`")
		if !*s.AllNodes {
			errs = append(errs, field.Invalid(path.Child("allNodes"), false, "must be either unset or set to true"))
		}
	}
	if s.PerDeviceNodeSelection != nil {
		set = append(set, "`perDeviceNodeSelection`")
		if !*s.PerDeviceNodeSelection {
			errs = append(errs, field.Invalid(path.Child("perDeviceNodeSelection"), false,
				"must be either unset or set to true"))
		}
	}
	const one = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
	switch len(set) {
	case 0:
		return append(errs, field.Required(path, one))
	case 1:
		return errs
	}
	return append(errs, field.Invalid(path, shown(set), one+", but multiple fields are set"))
}

func validateNodeSelector(s *corev1.NodeSelector, path *field.Path) field.ErrorList {
	errs := podspec.ValidateNodeSelector(s, path)
	if len(s.NodeSelectorTerms) == 1 {
		return errs
	}
	return append(errs, field.Invalid(path.Child("nodeSelectorTerms"), s.NodeSelectorTerms,
		"must have exactly one node selector term"))
}
