// Package trustbundlepublisher publishes the cluster's certificate authority as a ClusterTrustBundle of the signer
// kubernetes.io/kube-apiserver-serving, from where pods project it to verify the API server.
//
// The bundle's name has a hash of its content, as Kubernetes names it. With another authority there is another bundle;
// earlier ones of the signer are deleted when it is there.
package trustbundlepublisher

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient"
	certificatesclient "bonsai/pkg/apiclient/certificates"
	"bonsai/pkg/controller"
)

const (
	signer = "kubernetes.io/kube-apiserver-serving"
	prefix = "kubernetes.io:kube-apiserver-serving:"
	// hashed is how much of the hash a name has, in bytes.
	hashed = 12
)

// Controller reconciles the signer's bundles, all at once.
type Controller struct {
	bundle  *certificatesv1.ClusterTrustBundle
	bundles *controller.Informer[*certificatesv1.ClusterTrustBundle]
	writes  *apiclient.Resource[*certificatesv1.ClusterTrustBundle]
	metrics *controller.SyncMetrics
	now     func() time.Time
	loop    *controller.Loop[controller.Key]
}

// New returns the controller that publishes the PEM bundle.
func New(d controller.Deps, bundle []byte) (*Controller, error) {
	hash := sha256.Sum256(bundle)
	c := &Controller{
		bundle: &certificatesv1.ClusterTrustBundle{
			ObjectMeta: metav1.ObjectMeta{Name: prefix + hex.EncodeToString(hash[:hashed])},
			Spec:       certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: string(bundle)}},
		bundles: controller.FilteredInformerFor(d.Informers, certificatesclient.ClusterTrustBundles,
			apiclient.Selection{Fields: "spec.signerName=" + signer}),
		writes: certificatesclient.ClusterTrustBundles(d.Client),
		metrics: controller.NewSyncMetrics(d.Metrics, "clustertrustbundle_publisher",
			"of the API server's trust bundle"),
		now: d.Now,
	}
	c.loop = controller.NewLoop(controller.LoopConfig{Name: "ca_cert_publisher_cluster_trust_bundles",
		Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	c.loop.Add(controller.Key{Name: signer}) // also if there is no bundle yet
	return c, controller.Watch(c.loop, c.bundles, controller.All(func(*certificatesv1.ClusterTrustBundle) {
		c.loop.Add(controller.Key{Name: signer})
	}))
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile creates the bundle, or puts right what was changed in it, and then deletes others of the signer.
func (c *Controller) Reconcile(ctx context.Context, _ controller.Key) (controller.Result, error) {
	begun := c.now()
	err := c.reconcile(ctx)
	c.metrics.Synced(err, c.now().Sub(begun))
	return controller.Result{}, err
}

func (c *Controller) reconcile(ctx context.Context) error {
	if err := c.publish(ctx); err != nil {
		return fmt.Errorf("publish the ClusterTrustBundle %s: %w", c.bundle.Name, err)
	}
	var errs []error
	for _, other := range c.bundles.List() {
		if other.Name == c.bundle.Name || other.Spec.SignerName != signer {
			continue
		}
		if err := c.writes.Delete(ctx, "", other.Name, other.UID); err != nil && !apierrors.IsNotFound(err) &&
			!apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("delete the ClusterTrustBundle %s: %w", other.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (c *Controller) publish(ctx context.Context) error {
	have, ok := c.bundles.Get(controller.Key{Name: c.bundle.Name})
	if !ok {
		_, err := c.writes.Create(ctx, c.bundle.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			return nil // its event comes
		}
		return err
	}
	if have.Spec == c.bundle.Spec {
		return nil
	}
	changed := have.DeepCopy()
	changed.Spec = c.bundle.Spec
	_, err := c.writes.Update(ctx, changed)
	return err
}
