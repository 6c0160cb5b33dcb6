package resource

import (
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/api/validate"
)

func resourceClaimRow() resources.Row {
	return resources.Row{
		GVK: resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"), Resource: "resourceclaims",
		Singular:     "resourceclaim",
		Namespaced:   true,
		StoragePath:  "resourceclaims",
		New:          resources.Make[resourcev1.ResourceClaim],
		Strategy:     resourceClaimStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Status(resourceClaimStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("State", "A summary of the current state (allocated, pending, reserved, etc.)."),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(c *resourcev1.ResourceClaim, now time.Time) []any {
			return []any{c.Name, claimState(c), resources.Age(c.CreationTimestamp, now)}
		}),
	}
}

func resourceClaimStrategy() resources.Typed[*resourcev1.ResourceClaim] {
	return resources.Typed[*resourcev1.ResourceClaim]{
		ReturnDeleted: true,
		Default:       func(c *resourcev1.ResourceClaim) { defaultClaimSpec(&c.Spec) },
		PrepareCreate: func(c *resourcev1.ResourceClaim) {
			c.Status = resourcev1.ResourceClaimStatus{}
			dropDerived(&c.Spec)
		},
		PrepareUpdate: func(obj, old *resourcev1.ResourceClaim) {
			obj.Status = *old.Status.DeepCopy()
			if !derives(&old.Spec) {
				dropDerived(&obj.Spec)
			}
		},
		Validate: func(c *resourcev1.ResourceClaim) field.ErrorList {
			return validateClaimSpec(&c.Spec, nil, field.NewPath("spec"))
		},
		ValidateUpdate: func(obj, old *resourcev1.ResourceClaim) field.ErrorList {
			return apivalidation.ValidateImmutableField(obj.Spec, old.Spec, field.NewPath("spec"))
		},
	}
}

func resourceClaimStatusStrategy() resources.Typed[*resourcev1.ResourceClaim] {
	s := resourceClaimStrategy()
	s.PrepareUpdate = func(obj, old *resourcev1.ResourceClaim) {
		obj.Spec = *old.Spec.DeepCopy()
		metav1.ResetObjectMetaForStatus(&obj.ObjectMeta, &old.ObjectMeta)
		dropUnallocated(obj, old)
		dropSkipped(&obj.Status, &old.Status)
	}
	s.Resets = []string{"spec", "metadata"}
	s.ValidateUpdate = validateClaimStatus
	return s
}

// claimState is a claim's state as people read it.
func claimState(c *resourcev1.ResourceClaim) string {
	var states []string
	if c.DeletionTimestamp != nil {
		states = append(states, "deleted")
	}
	if c.Status.Allocation == nil && c.DeletionTimestamp == nil {
		states = append(states, "pending")
	}
	if c.Status.Allocation != nil {
		states = append(states, "allocated")
		if len(c.Status.ReservedFor) > 0 {
			states = append(states, "reserved")
		}
	}
	return strings.Join(states, ",")
}

// device names one that was allocated, in the words of upstream's messages.
type device struct{ Driver, Pool, Device, ShareID string }

func allocated(a *resourcev1.AllocationResult) map[device]bool {
	out := map[device]bool{}
	if a != nil {
		for _, r := range a.Devices.Results {
			out[device{r.Driver, r.Pool, r.Device, shareID(r.ShareID)}] = true
		}
	}
	return out
}

func shareID(id *types.UID) string {
	if id == nil {
		return ""
	}
	return string(*id)
}

// dropUnallocated drops what drivers said of devices that the claim has given back with this write.
func dropUnallocated(obj, old *resourcev1.ResourceClaim) {
	was, is := allocated(old.Status.Allocation), allocated(obj.Status.Allocation)
	kept := obj.Status.Devices[:0:0]
	for _, d := range obj.Status.Devices {
		id := device{d.Driver, d.Pool, d.Device, deref(d.ShareID)}
		if !was[id] || is[id] {
			kept = append(kept, d)
		}
	}
	obj.Status.Devices = kept
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func validateClaimStatus(obj, old *resourcev1.ResourceClaim) field.ErrorList {
	path := field.NewPath("status")
	s := &obj.Status
	var errs field.ErrorList
	switch {
	case s.Allocation == nil:
	case old.Status.Allocation != nil:
		if !apiequality.Semantic.DeepEqual(s.Allocation, old.Status.Allocation) {
			errs = append(errs, field.Invalid(path.Child("allocation"), s.Allocation,
				apivalidation.FieldImmutableErrorMsg))
		}
	default:
		errs = append(errs, validateAllocation(s.Allocation, requestNames(&obj.Spec.Devices),
			path.Child("allocation"))...)
	}
	errs = append(errs, validateReserved(s, path.Child("reservedFor"))...)
	return append(errs, validateDeviceStatus(s, path.Child("devices"))...)
}

func validateReserved(s *resourcev1.ResourceClaimStatus, path *field.Path) field.ErrorList {
	errs := bound(path, len(s.ReservedFor), resourcev1.ResourceClaimReservedForMaxSize)
	if len(s.ReservedFor) > 0 && s.Allocation == nil {
		errs = append(errs, field.Forbidden(path, "may not be specified when `allocated` is not set"))
	}
	seen := sets.New[types.UID]()
	for i, r := range s.ReservedFor[:min(len(s.ReservedFor), resourcev1.ResourceClaimReservedForMaxSize)] {
		at := path.Index(i)
		errs = append(errs, validate.Required(at.Child("resource"), r.Resource)...)
		errs = append(errs, validate.Required(at.Child("name"), r.Name)...)
		errs = append(errs, validate.Required(at.Child("uid"), string(r.UID))...)
		if seen.Has(r.UID) {
			errs = append(errs, field.Duplicate(at, r))
		}
		seen.Insert(r.UID)
	}
	return errs
}

func validateAllocation(a *resourcev1.AllocationResult, names sets.Set[string], path *field.Path) field.ErrorList {
	results := path.Child("devices", "results")
	errs := bound(results, len(a.Devices.Results), resourcev1.AllocationResultsMaxSize)
	for i, r := range a.Devices.Results[:min(len(a.Devices.Results), resourcev1.AllocationResultsMaxSize)] {
		at := results.Index(i)
		if !names.Has(r.Request) {
			errs = append(errs, field.Invalid(at.Child("request"), r.Request,
				"must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"))
		}
		errs = append(errs, validateDriverOf(r.Driver, at.Child("driver"))...)
		errs = append(errs, validatePoolName(r.Pool, at.Child("pool"))...)
		errs = append(errs, validate.Invalid(at.Child("device"), r.Device, validation.IsDNS1123Label(r.Device))...)
	}
	if s := a.NodeSelector; s != nil {
		errs = append(errs, validateNodeSelector(s, path.Child("nodeSelector"))...)
	}
	return errs
}

func validateDeviceStatus(s *resourcev1.ResourceClaimStatus, path *field.Path) field.ErrorList {
	has := allocated(s.Allocation)
	seen := map[device]bool{}
	var errs field.ErrorList
	for i := range s.Devices {
		d, at := &s.Devices[i], path.Index(i)
		id := device{d.Driver, d.Pool, d.Device, deref(d.ShareID)}
		switch {
		case seen[id]:
			errs = append(errs, field.Duplicate(at, d))
		case !has[id]:
			errs = append(errs, field.Invalid(at, id, "must be an allocated device in the claim"))
		}
		seen[id] = true
		errs = append(errs, bound(at.Child("conditions"), len(d.Conditions),
			resourcev1.AllocatedDeviceStatusMaxConditions)...)
		errs = append(errs, metavalidation.ValidateConditions(d.Conditions, at.Child("conditions"))...)
		if d.Data != nil && len(d.Data.Raw) > 0 {
			errs = append(errs, validateJSON(d.Data, resourcev1.AllocatedDeviceStatusDataMaxLength,
				at.Child("data"))...)
		}
	}
	return errs
}
