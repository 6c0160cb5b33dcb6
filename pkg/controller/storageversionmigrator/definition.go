package storageversionmigrator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	migrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// marker is the field manager of what is said in definitions, as upstream.
	marker = "migration-runner-controller"
	// migrating is the condition of a definition whose objects are being migrated.
	migrating = "StorageMigrating"
)

// markDefinition says in the definition of a custom resource that its objects are being migrated, or that this is over.
// After a success storage has its objects in one version only, if that has been the version to store since the start.
func (c *Controller) markDefinition(ctx context.Context, m *migration, succeeded bool) error {
	name := m.Spec.Resource.Resource + "." + m.Spec.Resource.Group
	d, err := c.definitions.Get(ctx, "", name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the definition %s: %w", name, err)
	}
	condition := apiextensionsv1.CustomResourceDefinitionCondition{Type: migrating, ObservedGeneration: d.Generation,
		LastTransitionTime: metav1.NewTime(c.Now())}
	// The list is said each time: an apply takes away what its manager wrote before and leaves out now. The server
	// would then name the storage version alone, though objects may be stored in others.
	versions := d.Status.StoredVersions
	switch {
	case !ended(m):
		condition.Status, condition.Reason = apiextensionsv1.ConditionTrue, "MigrationRunning"
		condition.Message = fmt.Sprintf("Migration %s is running", m.Name)
	case succeeded:
		condition.Status, condition.Reason = apiextensionsv1.ConditionFalse, "MigrationSucceeded"
		condition.Message = "The migration has succeeded but the stored versions have not been updated due to a " +
			"generation mismatch"
		if began(d) == d.Generation {
			condition.Message = "The migration has succeeded and the stored versions have been updated"
			versions = stored(d)
		}
	default:
		condition.Status, condition.Reason = apiextensionsv1.ConditionFalse, "MigrationFailed"
		condition.Message = "The migration has failed"
	}
	config, err := json.Marshal(map[string]any{"apiVersion": apiextensionsv1.SchemeGroupVersion.String(),
		"kind": "CustomResourceDefinition",
		// With its version: the list is about the definition as it was read.
		"metadata": map[string]any{"name": name, "uid": d.UID, "resourceVersion": d.ResourceVersion},
		"status":   map[string]any{"conditions": []any{condition}, "storedVersions": versions}})
	if err != nil {
		return fmt.Errorf("encoding the status of the definition %s: %w", name, err)
	}
	_, err = c.definitions.Apply(ctx, "", name, marker, config, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of the definition %s: %w", name, err)
	}
	return nil
}

func ended(m *migration) bool {
	return is(m, migrationv1.MigrationSucceeded) || is(m, migrationv1.MigrationFailed)
}

// began is the generation that a definition had when its migration began; 0 if it is not said.
func began(d *apiextensionsv1.CustomResourceDefinition) int64 {
	i := slices.IndexFunc(d.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == migrating && c.Status == apiextensionsv1.ConditionTrue
	})
	if i < 0 {
		return 0
	}
	return d.Status.Conditions[i].ObservedGeneration
}

// stored is the version that objects are stored in.
func stored(d *apiextensionsv1.CustomResourceDefinition) []string {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			return []string{v.Name}
		}
	}
	return nil
}
