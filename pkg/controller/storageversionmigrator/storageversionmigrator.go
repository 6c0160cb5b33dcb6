// Package storageversionmigrator carries out StorageVersionMigrations: it has the API server write every object of a
// resource again, so that storage holds it in the version, and under the encryption key, that the server uses by now.
// An object that is stored so already costs a request, and no write.
//
// A migration goes through the steps of its status: Running is True, resourceVersion says from when on the resource's
// objects are new, Succeeded or Failed is True, Running is False.
package storageversionmigrator

import (
	"context"
	"fmt"
	"sync"
	"time"

	migrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/apiextensions"
	"bonsai/pkg/apiclient/served"
	"bonsai/pkg/apiclient/storagemigration"
	"bonsai/pkg/controller"
)

type migration = migrationv1.StorageVersionMigration

// Controller reconciles StorageVersionMigrations.
type Controller struct {
	controller.Deps
	migrations  *controller.Informer[*migration]
	writes      *apiclient.Resource[*migration]
	definitions *apiclient.Resource[*apiextensionsv1.CustomResourceDefinition]
	metadata    metadata.Interface
	loop        *controller.Loop[controller.Key]

	// mu guards running: which migration has a resource for itself. Others of that resource wait for its end.
	mu      sync.Mutex
	running map[schema.GroupResource]holder
}

// holder is the migration that has a resource. A name may come again, for another resource.
type holder struct {
	name string
	uid  types.UID
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	m, err := served.Metadata(d.Client)
	if err != nil {
		return nil, err
	}
	c := &Controller{
		Deps: d, migrations: controller.InformerFor(d.Informers, storagemigration.StorageVersionMigrations),
		writes:      storagemigration.StorageVersionMigrations(d.Client),
		definitions: apiextensions.CustomResourceDefinitions(d.Client), metadata: m,
		running: map[schema.GroupResource]holder{},
	}
	c.loop = controller.NewLoop(controller.LoopConfig{Name: "storage-version-migrator-controller", Workers: d.Workers,
		Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	return c, controller.Watch(c.loop, c.migrations, controller.All(func(m *migration) {
		c.loop.Add(controller.KeyOf(m))
	}))
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile takes a migration one step further.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	stored, ok := c.migrations.Get(key)
	if !ok {
		c.release(key.Name, "")
		return controller.Result{}, nil
	}
	c.release(stored.Name, stored.UID)
	m := stored.DeepCopy()
	succeeded, failed := is(m, migrationv1.MigrationSucceeded), is(m, migrationv1.MigrationFailed)
	switch {
	case (succeeded || failed) && is(m, migrationv1.MigrationRunning):
		if err := c.markDefinition(ctx, m, succeeded); err != nil {
			return controller.Result{}, err
		}
		c.set(m, migrationv1.MigrationRunning, metav1.ConditionFalse, "MigrationCompleted", completed)
		return controller.Result{}, c.write(ctx, m)
	case succeeded || failed:
		c.release(m.Name, "")
		return controller.Result{}, nil
	case !c.take(m):
		return controller.Result{Backoff: true}, nil
	case !is(m, migrationv1.MigrationRunning):
		if err := c.markDefinition(ctx, m, false); err != nil {
			return controller.Result{}, err
		}
		c.set(m, migrationv1.MigrationRunning, metav1.ConditionTrue, "MigrationRunning", "The migration is running")
		return controller.Result{}, c.write(ctx, m)
	}
	return c.run(ctx, m)
}

const completed = "Migration completed"

// run migrates a resource that the server serves, after it has told from which version on.
func (c *Controller) run(ctx context.Context, m *migration) (controller.Result, error) {
	gr := resourceOf(m)
	catalog, err := served.Read(ctx, c.Client)
	if catalog == nil {
		return controller.Result{}, err
	}
	r, found := catalog.ForResource(gr)
	switch {
	case !found && err != nil: // it may be one of the groups that do not answer
		return controller.Result{}, err
	case !found && c.Now().Sub(since(m)) < patience:
		return controller.Result{Backoff: true}, nil
	case !found:
		return controller.Result{}, c.fail(ctx, m, "resource does not exist in discovery")
	case !r.Has("list", "patch", "update"):
		return controller.Result{}, c.fail(ctx, m, fmt.Sprintf(
			"resource %q does not support discovery operations: [update patch list]", r.GroupVersionResource.String()))
	case m.Status.ResourceVersion == "":
		if m.Status.ResourceVersion, err = c.versionOf(ctx, r); err != nil {
			return controller.Result{}, err
		}
		return controller.Result{}, c.write(ctx, m)
	}
	return controller.Result{}, c.migrate(ctx, m, r)
}

// patience is how long a migration waits for its resource to be served: as long as upstream tries.
const patience = 80 * time.Second

// nowhere is a namespace that cannot exist: a list of it has the version of a resource, and none of its objects.
const nowhere = "@fake:svm_ns!"

// versionOf is the version that a resource has by now.
func (c *Controller) versionOf(ctx context.Context, r served.Resource) (string, error) {
	namespace := ""
	if r.Namespaced {
		namespace = nowhere
	}
	list, err := c.metadata.Resource(r.GroupVersionResource).Namespace(namespace).List(ctx,
		metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", fmt.Errorf("reading the version of %s: %w", r.GroupResource(), err)
	}
	return list.ResourceVersion, nil
}

// take reserves the migration's resource for it, unless another migration has it.
func (c *Controller) take(m *migration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	gr := resourceOf(m)
	if has, taken := c.running[gr]; taken {
		return has.uid == m.UID
	}
	if !is(m, migrationv1.MigrationRunning) {
		for _, other := range c.migrations.List() {
			if other.Name != m.Name && resourceOf(other) == gr && is(other, migrationv1.MigrationRunning) {
				return false
			}
		}
	}
	c.running[gr] = holder{m.Name, m.UID}
	return true
}

// release gives back what migrations of a name had, except the one with the UID except, and wakes those
// that wait.
func (c *Controller) release(name string, except types.UID) {
	for gr := range c.drop(name, except) {
		for _, other := range c.migrations.List() {
			if resourceOf(other) == gr {
				c.loop.Add(controller.KeyOf(other))
			}
		}
	}
}

func (c *Controller) drop(name string, except types.UID) map[schema.GroupResource]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	had := map[schema.GroupResource]bool{}
	for gr, has := range c.running {
		if has.name == name && has.uid != except {
			had[gr] = true
			delete(c.running, gr)
		}
	}
	return had
}

func (c *Controller) fail(ctx context.Context, m *migration, why string) error {
	c.set(m, migrationv1.MigrationFailed, metav1.ConditionTrue, "StorageVersionMigrationFailed", why)
	return c.write(ctx, m)
}

func (c *Controller) set(m *migration, t migrationv1.MigrationConditionType, to metav1.ConditionStatus, reason,
	message string) {
	apimeta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: string(t), Status: to, Reason: reason,
		Message: message, LastTransitionTime: metav1.NewTime(c.Now())})
}

// write stores the status and keeps in m what the server made of it.
func (c *Controller) write(ctx context.Context, m *migration) error {
	now, err := c.writes.UpdateStatus(ctx, m)
	if err != nil {
		return fmt.Errorf("writing the status of migration %s: %w", m.Name, err)
	}
	*m = *now
	return nil
}

func is(m *migration, t migrationv1.MigrationConditionType) bool {
	return apimeta.IsStatusConditionTrue(m.Status.Conditions, string(t))
}

// since is when a migration began to run.
func since(m *migration) time.Time {
	running := apimeta.FindStatusCondition(m.Status.Conditions, string(migrationv1.MigrationRunning))
	return running.LastTransitionTime.Time
}

func resourceOf(m *migration) schema.GroupResource {
	return schema.GroupResource{Group: m.Spec.Resource.Group, Resource: m.Spec.Resource.Resource}
}
