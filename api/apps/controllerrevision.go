package apps

import (
	"bytes"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

func controllerRevisionRow() resources.Row {
	return resources.Row{
		GVK: appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), Resource: "controllerrevisions",
		Singular:    "controllerrevision",
		Namespaced:  true,
		StoragePath: "controllerrevisions",
		New:         resources.Make[appsv1.ControllerRevision],
		Strategy: resources.Typed[*appsv1.ControllerRevision]{
			Validate: validateRevision,
			ValidateUpdate: func(obj, old *appsv1.ControllerRevision) field.ErrorList {
				errs := validateRevision(obj)
				if !apiequality.Semantic.DeepEqual(obj.Data.Raw, old.Data.Raw) {
					errs = append(errs, field.Invalid(field.NewPath("data"), obj.Data,
						apivalidation.FieldImmutableErrorMsg))
				}
				return errs
			},
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Controller", "Controller of the object"),
			resources.Column("Revision", appsv1.ControllerRevision{}.SwaggerDoc()["revision"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(r *appsv1.ControllerRevision, now time.Time) []any {
			return []any{r.Name, controllerText(r), r.Revision, resources.Age(r.CreationTimestamp, now)}
		}),
	}
}

// controllerText names an object's controller as "statefulset.apps/web".
func controllerText(r *appsv1.ControllerRevision) string {
	owner := metav1.GetControllerOf(r)
	if owner == nil {
		return "<none>"
	}
	return resources.OwnerText(owner)
}

func validateRevision(r *appsv1.ControllerRevision) field.ErrorList {
	var errs field.ErrorList
	if len(r.Data.Raw) == 0 && r.Data.Object == nil {
		errs = append(errs, field.Required(field.NewPath("data"), "data is mandatory"))
	} else if raw := bytes.TrimSpace(r.Data.Raw); len(raw) > 0 && raw[0] != '{' {
		errs = append(errs, field.Required(field.NewPath("data"), "data must be a valid JSON object"))
	}
	return append(errs, apivalidation.ValidateNonnegativeField(r.Revision, field.NewPath("revision"))...)
}
