// Package bootstrapsigner signs the ConfigMap cluster-info with each bootstrap token that may sign it, so that a
// machine that joins with a token can verify the cluster's address and CA before it trusts them
// (https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/#configmap-signing).
package bootstrapsigner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/api/bootstraptoken"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
)

const (
	configNamespace = "kube-public"
	configName      = bootstraptoken.ClusterInfo
	tokenNamespace  = "kube-system"
)

// Controller reconciles the one ConfigMap.
type Controller struct {
	controller.Deps
	configs *controller.Informer[*corev1.ConfigMap]
	secrets *controller.Informer[*corev1.Secret]
	writes  *apiclient.Resource[*corev1.ConfigMap]
	loop    *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{
		Deps: d, writes: core.ConfigMaps(d.Client),
		configs: controller.FilteredInformerFor(d.Informers, core.ConfigMaps,
			apiclient.Selection{Namespace: configNamespace, Fields: "metadata.name=" + configName}),
		secrets: controller.FilteredInformerFor(d.Informers, core.Secrets,
			apiclient.Selection{Namespace: tokenNamespace, Fields: "type=" + string(corev1.SecretTypeBootstrapToken)}),
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "bootstrap_signer_queue", Workers: 1, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	return c, errors.Join(
		controller.WatchKeys(c.loop, c.configs),
		controller.Watch(c.loop, c.secrets, controller.All(func(*corev1.Secret) { c.loop.Add(key()) })),
	)
}

func key() controller.Key { return controller.Key{Namespace: configNamespace, Name: configName} }

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile makes the signatures in the ConfigMap those of the tokens that there are, and comes back when one of them
// expires.
func (c *Controller) Reconcile(ctx context.Context, at controller.Key) (controller.Result, error) {
	m, ok := c.configs.Get(at)
	if !ok || at != key() {
		return controller.Result{}, nil
	}
	now := c.Now()
	tokens, again := signing(c.secrets.List(), now)
	data := signed(m.Data, tokens)
	if maps.Equal(data, m.Data) {
		return controller.Result{RequeueAfter: again}, nil
	}
	m = m.DeepCopy()
	m.Data = data
	if _, err := c.writes.Update(ctx, m); err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("signing the ConfigMap %s: %w", at, err)
	}
	return controller.Result{RequeueAfter: again}, nil
}

// signing returns the tokens that are for signing, and after how long the first of them expires (0: never).
func signing(all []*corev1.Secret, now time.Time) (tokens []bootstraptoken.Token, again time.Duration) {
	for _, s := range all {
		t := bootstraptoken.Token{ID: string(s.Data[bootstraptoken.KeyID]),
			Secret: string(s.Data[bootstraptoken.KeySecret])}
		if t.ID == "" || t.Secret == "" || s.Name != bootstraptoken.SecretPrefix+t.ID ||
			string(s.Data[bootstraptoken.KeySigning]) != "true" || s.DeletionTimestamp != nil {
			continue
		}
		if text := string(s.Data[bootstraptoken.KeyExpiration]); text != "" {
			at, err := time.Parse(time.RFC3339, text)
			left := at.Sub(now)
			if err != nil || left <= 0 {
				continue
			}
			if again == 0 || left < again {
				again = left
			}
		}
		tokens = append(tokens, t)
	}
	return tokens, again
}
