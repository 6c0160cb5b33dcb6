package storage

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"bonsai/api/defaults"
	"bonsai/api/podspec"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

// The annotations that mark a class as the default with "true".
const (
	DefaultAnnotation     = "storageclass.kubernetes.io/is-default-class"
	BetaDefaultAnnotation = "storageclass.beta.kubernetes.io/is-default-class"
)

// storageClassWarnings tells of old labels that nodes are chosen by.
func storageClassWarnings(c, _ *storagev1.StorageClass) []string {
	var w []string
	for i := range c.AllowedTopologies {
		for j, e := range c.AllowedTopologies[i].MatchLabelExpressions {
			if old := podspec.OldLabel(e.Key); old != "" {
				w = append(w, fmt.Sprintf("%s: %s",
					field.NewPath("allowedTopologies").Index(i).Child("matchLabelExpressions").Index(j).Child("key"),
					old))
			}
		}
	}
	return w
}

func storageClassRow() resources.Row {
	doc := storagev1.StorageClass{}.SwaggerDoc()
	return resources.Row{
		GVK: storagev1.SchemeGroupVersion.WithKind("StorageClass"), Resource: "storageclasses",
		Singular:    "storageclass",
		ShortNames:  []string{"sc"},
		StoragePath: "storageclasses",
		New:         resources.Make[storagev1.StorageClass],
		Strategy: resources.Typed[*storagev1.StorageClass]{
			ReturnDeleted: true,
			Default: func(c *storagev1.StorageClass) {
				defaults.SetPtr(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
				defaults.SetPtr(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
			},
			Validate:       validateStorageClass,
			ValidateUpdate: validateStorageClassUpdate,
			Warnings:       storageClassWarnings,
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Provisioner", doc["provisioner"]),
			resources.Column("ReclaimPolicy", doc["reclaimPolicy"]),
			resources.Column("VolumeBindingMode", doc["volumeBindingMode"]),
			resources.Column("AllowVolumeExpansion", doc["allowVolumeExpansion"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(storageClassCells),
		// Only a list shows which class is the default one: of several marked classes, it is one.
		CellsAmong: func(all []runtime.Object) func(runtime.Object, time.Time) []any {
			classes := make([]*storagev1.StorageClass, len(all))
			for i, obj := range all {
				classes[i] = obj.(*storagev1.StorageClass)
			}
			preferred := DefaultClass(classes)
			return resources.Cells(func(c *storagev1.StorageClass, now time.Time) []any {
				cells := storageClassCells(c, now)
				if c.Name == preferred {
					cells[0] = c.Name + " (default)"
				}
				return cells
			})
		},
	}
}

func storageClassCells(c *storagev1.StorageClass, now time.Time) []any {
	return []any{c.Name, c.Provisioner, string(ptr.Deref(c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)),
		string(ptr.Deref(c.VolumeBindingMode, storagev1.VolumeBindingImmediate)),
		ptr.Deref(c.AllowVolumeExpansion, false), resources.Age(c.CreationTimestamp, now)}
}

// IsDefault reports whether a class is marked as the default one.
func IsDefault(c *storagev1.StorageClass) bool {
	return c.Annotations[DefaultAnnotation] == "true" || c.Annotations[BetaDefaultAnnotation] == "true"
}

// DefaultClass is the name of the class that claims get which name none, "" if there is none.
func DefaultClass(classes []*storagev1.StorageClass) string {
	name, _ := defaults.NewestMarked(classes, DefaultAnnotation, BetaDefaultAnnotation)
	return name
}

func validateStorageClass(c *storagev1.StorageClass) field.ErrorList {
	errs := validateProvisioner(c.Provisioner, field.NewPath("provisioner"))
	errs = append(errs, validateParameters(c.Parameters, false, field.NewPath("parameters"))...)
	if p := c.ReclaimPolicy; p != nil {
		errs = append(errs, validate.Among(field.NewPath("reclaimPolicy"), *p, corev1.PersistentVolumeReclaimDelete,
			corev1.PersistentVolumeReclaimRetain)...)
	}
	mode := field.NewPath("volumeBindingMode")
	if c.VolumeBindingMode == nil {
		errs = append(errs, field.Required(mode, ""))
	} else {
		errs = append(errs, validate.Among(mode, *c.VolumeBindingMode, storagev1.VolumeBindingImmediate,
			storagev1.VolumeBindingWaitForFirstConsumer)...)
	}
	return append(errs, validateTopologies(c.AllowedTopologies, field.NewPath("allowedTopologies"))...)
}

// validateTopologies: no term is there twice, and none is empty, which upstream tells as a duplicate, too.
func validateTopologies(terms []corev1.TopologySelectorTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i := range terms {
		at := path.Index(i).Child("matchLabelExpressions")
		term, bad := validateTopologyTerm(terms[i].MatchLabelExpressions, at)
		errs = append(errs, bad...)
		key := topologyKey(term)
		if key == "" || seen.Has(key) {
			errs = append(errs, field.Duplicate(at, ""))
		}
		seen.Insert(key)
	}
	return errs
}

// validateTopologyTerm returns what the term says: values by keys.
func validateTopologyTerm(list []corev1.TopologySelectorLabelRequirement,
	path *field.Path) (map[string]sets.Set[string], field.ErrorList) {
	var errs field.ErrorList
	term := map[string]sets.Set[string]{}
	for i, r := range list {
		at := path.Index(i)
		values := sets.New[string]()
		if len(r.Values) == 0 {
			errs = append(errs, field.Required(at.Child("values"), ""))
		}
		for j, v := range r.Values {
			if values.Has(v) {
				errs = append(errs, field.Duplicate(at.Child("values").Index(j), v))
			}
			values.Insert(v)
		}
		errs = append(errs, metavalidation.ValidateLabelName(r.Key, at.Child("key"))...)
		if _, ok := term[r.Key]; ok {
			errs = append(errs, field.Duplicate(at.Child("key"), r.Key))
		}
		term[r.Key] = values
	}
	return term, errs
}

// topologyKey is the same for terms that say the same; "" for one that says nothing.
func topologyKey(term map[string]sets.Set[string]) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(term)) {
		b.WriteString(strconv.Quote(key))
		for _, v := range sets.List(term[key]) {
			b.WriteString(strconv.Quote(v))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// validateStorageClassUpdate: volumes were made by what a class says, so it stays.
func validateStorageClassUpdate(obj, old *storagev1.StorageClass) field.ErrorList {
	errs := validateStorageClass(obj)
	errs = append(errs, validate.Immutable(obj.Parameters, old.Parameters,
		field.NewPath("parameters"))...)
	errs = append(errs, validate.Immutable(obj.Provisioner, old.Provisioner,
		field.NewPath("provisioner"))...)
	errs = append(errs, validate.Immutable(obj.ReclaimPolicy, old.ReclaimPolicy,
		field.NewPath("reclaimPolicy"))...)
	return append(errs, validate.Immutable(obj.VolumeBindingMode, old.VolumeBindingMode,
		field.NewPath("volumeBindingMode"))...)
}
