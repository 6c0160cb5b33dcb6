// Package rootca publishes the cluster's certificate authority as the ConfigMap kube-root-ca.crt in every namespace,
// from where pods mount it to verify the API server.
package rootca

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
)

const (
	name        = "kube-root-ca.crt"
	dataKey     = "ca.crt"
	annotation  = "kubernetes.io/description"
	description = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. " +
		"No other usage is guaranteed across distributions of Kubernetes clusters."
)

// Controller reconciles namespaces, keyed by their name.
type Controller struct {
	bundle     string
	namespaces *controller.Informer[*corev1.Namespace]
	maps       *controller.Informer[*corev1.ConfigMap]
	writes     *apiclient.Resource[*corev1.ConfigMap]
	metrics    *controller.SyncMetrics
	now        func() time.Time
	loop       *controller.Loop[controller.Key]
}

// New returns the controller that publishes the PEM bundle.
func New(d controller.Deps, bundle []byte) (*Controller, error) {
	c := &Controller{
		bundle:     string(bundle),
		namespaces: controller.InformerFor(d.Informers, core.Namespaces),
		maps: controller.FilteredInformerFor(d.Informers, core.ConfigMaps,
			apiclient.Selection{Fields: "metadata.name=" + name}),
		writes:  core.ConfigMaps(d.Client),
		metrics: controller.NewSyncMetrics(d.Metrics, "root_ca_cert_publisher", "of the ConfigMap in a namespace"),
		now:     d.Now,
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "root_ca_cert_publisher", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	return c, errors.Join(
		controller.WatchKeys(c.loop, c.namespaces),
		controller.Watch(c.loop, c.maps, controller.All(func(m *corev1.ConfigMap) {
			c.loop.Add(controller.Key{Name: m.Namespace})
		})),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile creates the map, or puts right what was changed in it.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	if _, ok := c.namespaces.Get(key); !ok || controller.Ending(c.namespaces, key.Name) {
		return controller.Result{}, nil
	}
	begun := c.now()
	err := c.publish(ctx, key.Name)
	c.metrics.Synced(err, c.now().Sub(begun))
	if err == nil || apierrors.IsAlreadyExists(err) || controller.NamespaceEnding(err) {
		return controller.Result{}, nil
	}
	return controller.Result{}, fmt.Errorf("publishing the root CA in namespace %s: %w", key.Name, err)
}

func (c *Controller) publish(ctx context.Context, ns string) error {
	data := map[string]string{dataKey: c.bundle}
	have, ok := c.maps.Get(controller.Key{Namespace: ns, Name: name})
	if !ok {
		_, err := c.writes.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name,
				Annotations: map[string]string{annotation: description}}, Data: data,
		})
		return err
	}
	if maps.Equal(have.Data, data) && have.Annotations[annotation] != "" {
		return nil
	}
	m := have.DeepCopy()
	m.Data = data
	m.Annotations = maps.Clone(m.Annotations)
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[annotation] = description
	_, err := c.writes.Update(ctx, m)
	return err
}
