// Package operator is an operator as its users write it with controller-runtime: a kind in two versions with
// defaulting, validating and conversion webhooks, and a controller with a finalizer, owned objects, server-side apply
// and status. Its test runs it on envtest's control plane, made of our binaries, or on a whole cluster.
package operator

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"bonsai/test/ecosystem/operator/v1"
)

const (
	// finalizer has the Website's name taken out of the ConfigMap of names before it goes.
	finalizer = v1.Group + "/name"
	// names is the ConfigMap in each namespace that stands for what lives outside of the cluster: a key for each
	// Website.
	names = "names"
	// manager is who applies Deployments.
	manager = "website-controller"
)

// reconciler makes Websites so.
type reconciler struct {
	client.Client
	events events.EventRecorder
}

// setup registers the controller with the manager.
func (r *reconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&v1.Website{}).Owns(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).
		// two managers of one process stand in one election
		WithOptions(controller.Options{SkipNameValidation: new(true)}).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	site := &v1.Website{}
	if err := r.Get(ctx, req.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, site)
	}
	if controllerutil.AddFinalizer(site, finalizer) {
		return ctrl.Result{}, r.Update(ctx, site)
	}
	if err := r.setName(ctx, site, func(data map[string]string) { data[site.Name] = string(site.UID) }); err != nil {
		return ctrl.Result{}, err
	}
	pages := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, pages, func() error {
		pages.Data = site.Spec.Pages
		return controllerutil.SetControllerReference(site, pages, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if done != controllerutil.OperationResultNone {
		r.events.Eventf(site, pages, corev1.EventTypeNormal, "PagesWritten", "Write", "ConfigMap %s: %s", pages.Name,
			done)
	}
	if err := r.Apply(ctx, deployment(site), client.FieldOwner(manager), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, site)
}

// finalize lets site go.
func (r *reconciler) finalize(ctx context.Context, site *v1.Website) error {
	if !controllerutil.ContainsFinalizer(site, finalizer) {
		return nil
	}
	if err := r.setName(ctx, site, func(data map[string]string) { delete(data, site.Name) }); err != nil {
		return err
	}
	before := site.DeepCopyObject().(*v1.Website)
	controllerutil.RemoveFinalizer(site, finalizer)
	return client.IgnoreNotFound(
		r.Patch(ctx, site, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// setName changes the names of site's namespace.
func (r *reconciler) setName(ctx context.Context, site *v1.Website, change func(map[string]string)) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: names}}
	_, err := controllerutil.CreateOrPatch(ctx, r.Client, cm, func() error {
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		change(cm.Data)
		return nil
	})
	return err
}

// report writes what became of the Deployment into site's status.
func (r *reconciler) report(ctx context.Context, site *v1.Website) error {
	var d appsv1.Deployment
	if err := r.Get(ctx, client.ObjectKeyFromObject(site), &d); err != nil {
		return client.IgnoreNotFound(err) // not in the cache yet: its event comes
	}
	before := site.DeepCopyObject().(*v1.Website)
	condition := metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, Reason: "Starting",
		ObservedGeneration: site.Generation,
		Message:            fmt.Sprintf("%d of %d replicas are ready", d.Status.ReadyReplicas, *site.Spec.Replicas)}
	if d.Status.ReadyReplicas == *site.Spec.Replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, "Served"
	}
	meta.SetStatusCondition(&site.Status.Conditions, condition)
	site.Status.ObservedGeneration, site.Status.Replicas = site.Generation, d.Status.Replicas
	return r.Status().Patch(ctx, site, client.MergeFrom(before))
}

// deployment is what serves site, as the part of it that this operator has an opinion on.
func deployment(site *v1.Website) *appsapply.DeploymentApplyConfiguration {
	labels := map[string]string{"website": site.Name}
	return appsapply.Deployment(site.Name, site.Namespace).
		WithLabels(labels).
		WithOwnerReferences(metaapply.OwnerReference().WithAPIVersion(v1.Group + "/v1").WithKind("Website").
			WithName(site.Name).WithUID(site.UID).WithController(true).WithBlockOwnerDeletion(true)).
		WithSpec(appsapply.DeploymentSpec().
			WithReplicas(*site.Spec.Replicas).
			WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(coreapply.PodTemplateSpec().WithLabels(labels).WithSpec(coreapply.PodSpec().
				WithTerminationGracePeriodSeconds(0).
				WithContainers(coreapply.Container().WithName("httpd").WithImage("localhost/busybox:1.0").
					WithArgs("httpd", "-f", "-p", "8080", "-h", "/pages").
					WithPorts(coreapply.ContainerPort().WithContainerPort(8080)).
					WithVolumeMounts(coreapply.VolumeMount().WithName("pages").WithMountPath("/pages"))).
				WithVolumes(coreapply.Volume().WithName("pages").WithConfigMap(
					coreapply.ConfigMapVolumeSource().WithName(site.Name))))))
}
