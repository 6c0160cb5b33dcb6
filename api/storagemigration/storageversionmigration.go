package storagemigration

import (
	"time"

	migrationv1 "k8s.io/api/storagemigration/v1"
	migrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/api/validate"
)

type migration = migrationv1.StorageVersionMigration

func migrationRow() resources.Row {
	name := resources.NameColumn()
	name.Format = "" // upstream's has none here
	return resources.Row{
		GVK: migrationv1.SchemeGroupVersion.WithKind("StorageVersionMigration"), Resource: "storageversionmigrations",
		Singular:       "storageversionmigration",
		StoragePath:    "storageversionmigrations",
		StorageVersion: migrationv1beta1.SchemeGroupVersion.Version,
		New:            resources.Make[migration],
		Strategy:       migrationStrategy().Strategy(),
		Subresources:   []resources.Subresource{resources.Status(migrationStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			name,
			resources.Column("Resource", "GroupResource to migrate"),
			resources.Column("Status", "Status of the migration"),
		},
		Cells: resources.Cells(func(m *migration, _ time.Time) []any {
			of := m.Spec.Resource.Resource
			if m.Spec.Resource.Group != "" {
				of += "." + m.Spec.Resource.Group
			}
			return []any{m.Name, of, state(m)}
		}),
	}
}

// state is a migration's state in one word: its end, if it has ended.
func state(m *migration) string {
	for _, t := range []migrationv1.MigrationConditionType{migrationv1.MigrationSucceeded, migrationv1.MigrationFailed,
		migrationv1.MigrationRunning} {
		if is(m, t) {
			return string(t)
		}
	}
	return "Unknown"
}

func is(m *migration, t migrationv1.MigrationConditionType) bool {
	return apimeta.IsStatusConditionTrue(m.Status.Conditions, string(t))
}

func migrationStrategy() resources.Typed[*migration] {
	return resources.Typed[*migration]{
		NeedsVersion:  true,
		PrepareCreate: func(m *migration) { m.Status = migrationv1.StorageVersionMigrationStatus{} },
		PrepareUpdate: func(m, old *migration) { m.Status = *old.Status.DeepCopy() },
		Validate:      validateMigration,
		ValidateUpdate: func(m, old *migration) field.ErrorList {
			errs := validateMigration(m)
			if m.Spec != old.Spec {
				// shown to the client with upstream's names
				given := struct{ Resource metav1.GroupResource }{m.Spec.Resource}
				errs = append(errs, field.Invalid(field.NewPath("spec"), given, apivalidation.FieldImmutableErrorMsg))
			}
			return errs
		},
	}
}

func migrationStatusStrategy() resources.Typed[*migration] {
	return resources.Typed[*migration]{
		NeedsVersion: true,
		PrepareUpdate: func(m, old *migration) {
			m.Spec = old.Spec
			metav1.ResetObjectMetaForStatus(&m.ObjectMeta, &old.ObjectMeta)
		},
		Resets:         []string{"spec", "metadata"},
		ValidateUpdate: validateStatus,
	}
}

func validateMigration(m *migration) field.ErrorList {
	path, of := field.NewPath("spec", "resource"), m.Spec.Resource
	var errs field.ErrorList
	if at := path.Child("resource"); of.Resource == "" {
		errs = append(errs, field.Required(at, "resource is required to be set"))
	} else {
		errs = append(errs, validate.Invalid(at, of.Resource, validation.IsDNS1035Label(of.Resource))...)
	}
	if of.Group != "" {
		errs = append(errs, validate.Invalid(path.Child("group"), of.Group,
			validation.IsDNS1123Subdomain(of.Group))...)
	}
	return errs
}

// validateStatus: a version that is known stays, and so does an end.
func validateStatus(m, old *migration) field.ErrorList {
	path := field.NewPath("status")
	var errs field.ErrorList
	if is, was := m.Status.ResourceVersion, old.Status.ResourceVersion; is != was {
		at := path.Child("resourceVersion")
		if is != "" {
			if _, err := resourceversion.CompareResourceVersion(is, is); err != nil {
				errs = append(errs, field.Invalid(at, is, err.Error()))
			}
		}
		if was != "" {
			errs = append(errs, field.Invalid(at, is, apivalidation.FieldImmutableErrorMsg))
		}
	}
	at, has := path.Child("conditions"), m.Status.Conditions
	errs = append(errs, metavalidation.ValidateConditions(has, at)...)
	if is(m, migrationv1.MigrationSucceeded) && is(m, migrationv1.MigrationFailed) {
		errs = append(errs, field.Invalid(at, has, "Both success and failed conditions cannot be true at the same time"))
	}
	if is(old, migrationv1.MigrationSucceeded) && !is(m, migrationv1.MigrationSucceeded) {
		errs = append(errs, field.Invalid(at, has, "Success condition cannot be set to false once it is true"))
	}
	if is(old, migrationv1.MigrationFailed) && !is(m, migrationv1.MigrationFailed) {
		errs = append(errs, field.Invalid(at, has, "Failed condition cannot be set to false once it is true"))
	}
	return errs
}
