package storage

import (
	"math"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"bonsai/api/defaults"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

func csiDriverRow() resources.Row {
	doc := storagev1.CSIDriverSpec{}.SwaggerDoc()
	boolean := func(name, key string) metav1.TableColumnDefinition {
		c := resources.Column(name, doc[key])
		c.Type = "boolean"
		return c
	}
	return resources.Row{
		GVK: storagev1.SchemeGroupVersion.WithKind("CSIDriver"), Resource: "csidrivers", Singular: "csidriver",
		StoragePath: "csidrivers",
		New:         resources.Make[storagev1.CSIDriver],
		Strategy: resources.Typed[*storagev1.CSIDriver]{
			NeedsVersion:   true,
			ReturnDeleted:  true,
			Default:        defaultCSIDriver,
			PrepareCreate:  prepareCSIDriver,
			Validate:       validateCSIDriver,
			ValidateUpdate: validateCSIDriverUpdate,
			SpecChanged:    csiDriverChanged,
			Warnings:       csiDriverWarnings,
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			boolean("AttachRequired", "attachRequired"),
			boolean("PodInfoOnMount", "podInfoOnMount"),
			boolean("StorageCapacity", "storageCapacity"),
			resources.Column("TokenRequests", doc["tokenRequests"]),
			boolean("RequiresRepublish", "requiresRepublish"),
			resources.Column("Modes", doc["volumeLifecycleModes"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(csiDriverCells),
	}
}

func csiDriverCells(d *storagev1.CSIDriver, now time.Time) []any {
	modes := make([]string, len(d.Spec.VolumeLifecycleModes))
	for i, m := range d.Spec.VolumeLifecycleModes {
		modes[i] = string(m)
	}
	audiences := make([]string, len(d.Spec.TokenRequests))
	for i, t := range d.Spec.TokenRequests {
		audiences[i] = t.Audience
	}
	shown := func(list []string, none string) string {
		if len(list) == 0 {
			return none
		}
		return strings.Join(list, ",")
	}
	s := &d.Spec
	return []any{d.Name, ptr.Deref(s.AttachRequired, true), ptr.Deref(s.PodInfoOnMount, false),
		ptr.Deref(s.StorageCapacity, false), shown(audiences, "<unset>"),
		ptr.Deref(s.RequiresRepublish, false), shown(modes, "<none>"), resources.Age(d.CreationTimestamp, now)}
}

func defaultCSIDriver(d *storagev1.CSIDriver) {
	s := &d.Spec
	defaults.SetPtr(&s.AttachRequired, true)
	defaults.SetPtr(&s.PodInfoOnMount, false)
	defaults.SetPtr(&s.StorageCapacity, false)
	defaults.SetPtr(&s.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	defaults.SetPtr(&s.RequiresRepublish, false)
	defaults.SetPtr(&s.SELinuxMount, false)
	defaults.SetPtr(&s.PreventPodSchedulingIfMissing, false)
	if len(s.VolumeLifecycleModes) == 0 {
		s.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
}

func prepareCSIDriver(d *storagev1.CSIDriver) { d.Generation = 0 }

// csiDriverWarnings: a driver that asks for tokens should say where it wants them.
func csiDriverWarnings(d, old *storagev1.CSIDriver) []string {
	if len(d.Spec.TokenRequests) == 0 || d.Spec.ServiceAccountTokenInSecrets != nil ||
		old != nil && apiequality.Semantic.DeepEqual(d.Spec.TokenRequests, old.Spec.TokenRequests) {
		return nil
	}
	return []string{"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes"}
}

// csiDriverChanged: the generation moves with what may change of a driver. It begins with the first change.
func csiDriverChanged(obj, old *storagev1.CSIDriver) bool {
	return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
}

// Bounds of a driver's wishes.
const (
	minTokenSeconds        = 600
	minUpdatePeriodSeconds = 10
)

func validateCSIDriver(d *storagev1.CSIDriver) field.ErrorList {
	var errs field.ErrorList
	if d.Name != "" { // the registry reports an empty name, for every kind
		errs = validateDriverName(d.Name, field.NewPath("metadata", "name"))
	}
	return append(errs, validateCSIDriverSpec(&d.Spec, field.NewPath("spec"))...)
}

func validateCSIDriverSpec(s *storagev1.CSIDriverSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, m := range s.VolumeLifecycleModes {
		errs = append(errs, validate.Among(path.Child("volumeLifecycleModes"), m, storagev1.VolumeLifecyclePersistent,
			storagev1.VolumeLifecycleEphemeral)...)
	}
	if p := s.FSGroupPolicy; p != nil {
		errs = append(errs, validate.Among(path.Child("fsGroupPolicy"), *p, storagev1.FileFSGroupPolicy,
			storagev1.NoneFSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)...)
	}
	errs = append(errs, validateTokenRequests(s.TokenRequests, path.Child("tokenRequests"))...)
	if n := s.NodeAllocatableUpdatePeriodSeconds; n != nil && *n < minUpdatePeriodSeconds {
		errs = append(errs, field.Invalid(path.Child("nodeAllocatableUpdatePeriodSeconds"), *n,
			"must be greater than or equal to 10 seconds"))
	}
	if in := s.ServiceAccountTokenInSecrets; in != nil && len(s.TokenRequests) == 0 {
		errs = append(errs, field.Invalid(path.Child("serviceAccountTokenInSecrets"), *in,
			"serviceAccountTokenInSecrets is set but no tokenRequests are specified"))
	}
	return errs
}

func validateTokenRequests(list []storagev1.TokenRequest, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	audiences := sets.New[string]()
	for i, t := range list {
		at := path.Index(i)
		if audiences.Has(t.Audience) {
			errs = append(errs, field.Duplicate(at.Child("audience"), t.Audience))
			continue
		}
		audiences.Insert(t.Audience)
		switch s := t.ExpirationSeconds; {
		case s == nil:
		case *s < minTokenSeconds:
			errs = append(errs, field.Invalid(at.Child("expirationSeconds"), *s,
				"may not specify a duration less than 10 minutes"))
		case *s > math.MaxUint32:
			errs = append(errs, field.Invalid(at.Child("expirationSeconds"), *s,
				"may not specify a duration larger than 2^32 seconds"))
		}
	}
	return errs
}

func validateCSIDriverUpdate(obj, old *storagev1.CSIDriver) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateCSIDriver(obj)
	errs = append(errs, apivalidation.ValidateImmutableField(obj.Spec.AttachRequired, old.Spec.AttachRequired,
		path.Child("attachedRequired"))...)
	return append(errs, apivalidation.ValidateImmutableField(obj.Spec.VolumeLifecycleModes,
		old.Spec.VolumeLifecycleModes, path.Child("volumeLifecycleModes"))...)
}
