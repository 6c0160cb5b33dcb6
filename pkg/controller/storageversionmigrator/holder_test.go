package storageversionmigrator

import (
	"testing"

	migrationv1 "k8s.io/api/storagemigration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// TestMadeAgain: a migration that is made again under its name has nothing of what the earlier one had, also if its
// deletion was never seen.
func TestMadeAgain(t *testing.T) {
	t.Parallel()
	c := &Controller{running: map[schema.GroupResource]holder{}}
	of := func(name, uid, resource string) *migration {
		return &migration{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)},
			Spec: migrationv1.StorageVersionMigrationSpec{Resource: metav1.GroupResource{Resource: resource}},
			Status: migrationv1.StorageVersionMigrationStatus{Conditions: []metav1.Condition{
				{Type: string(migrationv1.MigrationRunning), Status: metav1.ConditionTrue}}}}
	}
	earlier, again, waits := of("a", "1", "olds"), of("a", "2", "news"), of("b", "3", "olds")
	if !c.take(earlier) || c.take(waits) || c.take(of("a", "2", "olds")) {
		t.Error("a resource is not one migration's")
	}
	if had := c.drop("a", "1"); len(had) > 0 || !c.take(earlier) {
		t.Errorf("a migration that goes on has lost %v", had)
	}
	had := c.drop("a", "2")
	if len(had) != 1 || !had[resourceOf(earlier)] || !c.take(again) || !c.take(waits) {
		t.Errorf("given back: %v", had)
	}
}
