package node

import (
	"fmt"
	"maps"
	"slices"
	"time"

	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"bonsai/api/podspec"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

func runtimeClassRow() resources.Row {
	return resources.Row{
		GVK: nodev1.SchemeGroupVersion.WithKind("RuntimeClass"), Resource: "runtimeclasses", Singular: "runtimeclass",
		PlainFinalizers: true,
		StoragePath:     "runtimeclasses",
		New:             resources.Make[nodev1.RuntimeClass],
		Strategy: resources.Typed[*nodev1.RuntimeClass]{
			NeedsVersion:   true,
			Validate:       validateRuntimeClass,
			ValidateUpdate: validateRuntimeClassUpdate,
			Warnings:       runtimeClassWarnings,
			CreateOnUpdate: true,
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Handler", nodev1.RuntimeClass{}.SwaggerDoc()["handler"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(c *nodev1.RuntimeClass, now time.Time) []any {
			return []any{c.Name, c.Handler, resources.Age(c.CreationTimestamp, now)}
		}),
	}
}

// runtimeClassWarnings tells of old labels that nodes are selected by.
func runtimeClassWarnings(c, _ *nodev1.RuntimeClass) []string {
	if c.Scheduling == nil {
		return nil
	}
	var w []string
	for _, key := range slices.Sorted(maps.Keys(c.Scheduling.NodeSelector)) {
		if old := podspec.OldLabel(key); old != "" {
			w = append(w, fmt.Sprintf("%s: %s", field.NewPath("scheduling", "nodeSelector"), old))
		}
	}
	return w
}

func validateRuntimeClass(c *nodev1.RuntimeClass) field.ErrorList {
	errs := validateHandler(c.Handler)
	if c.Overhead != nil {
		errs = append(errs, podspec.ValidateOverhead(c.Overhead.PodFixed, field.NewPath("overhead"))...)
	}
	if c.Scheduling != nil {
		errs = append(errs, validateScheduling(c.Scheduling, field.NewPath("scheduling"))...)
	}
	return errs
}

func validateHandler(handler string) field.ErrorList {
	path := field.NewPath("handler")
	if handler == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return validate.Invalid(path, handler, content.IsDNS1123Label(handler))
}

func validateScheduling(s *nodev1.Scheduling, path *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector"))
	tolerations := path.Child("tolerations")
	errs = append(errs, podspec.ValidateTolerations(s.Tolerations, tolerations)...)
	seen := map[string]bool{}
	for i := range s.Tolerations {
		t := &s.Tolerations[i]
		key := fmt.Sprintf("%q %q %q %q %v", t.Key, t.Operator, t.Value, t.Effect, ptr.Deref(t.TolerationSeconds, -1))
		if seen[key] {
			errs = append(errs, field.Duplicate(tolerations.Index(i), *t))
		}
		seen[key] = true
	}
	return errs
}

func validateRuntimeClassUpdate(obj, old *nodev1.RuntimeClass) field.ErrorList {
	errs := validateRuntimeClass(obj)
	return append(errs, validate.Immutable(obj.Handler, old.Handler, field.NewPath("handler"))...)
}
