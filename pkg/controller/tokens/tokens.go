// Package tokens looks after Secrets of the type kubernetes.io/service-account-token: it fills those that somebody
// made, with a token that does not expire, and deletes those whose service account is gone.
package tokens

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
)

// Config says what goes into the Secrets.
type Config struct {
	// Signer signs the tokens; nil leaves Secrets unfilled.
	Signer *Signer
	// RootCA is the PEM bundle put beside the token; may be empty.
	RootCA []byte
}

// Controller reconciles token Secrets.
type Controller struct {
	controller.Deps
	cfg      Config
	secrets  *controller.Informer[*corev1.Secret]
	accounts *controller.Informer[*corev1.ServiceAccount]
	write    *apiclient.Resource[*corev1.Secret]
	live     *apiclient.Resource[*corev1.ServiceAccount]
	loop     *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps, cfg Config) (*Controller, error) {
	c := &Controller{
		Deps: d, cfg: cfg, write: core.Secrets(d.Client), live: core.ServiceAccounts(d.Client),
		secrets: controller.FilteredInformerFor(d.Informers, core.Secrets,
			apiclient.Selection{Fields: "type=" + string(corev1.SecretTypeServiceAccountToken)}),
		accounts: controller.InformerFor(d.Informers, core.ServiceAccounts),
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "serviceaccount_tokens_service", Workers: d.Workers, Log: d.Log,
			Metrics: d.Metrics}, c.Reconcile)
	return c, errors.Join(
		controller.WatchKeys(c.loop, c.secrets),
		controller.Watch(c.loop, c.accounts, controller.Handlers[*corev1.ServiceAccount]{Add: c.wake, Delete: c.wake}),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

func (c *Controller) wake(sa *corev1.ServiceAccount) {
	for _, s := range c.secrets.InNamespace(sa.Namespace) {
		if s.Annotations[corev1.ServiceAccountNameKey] == sa.Name {
			c.loop.Add(controller.KeyOf(s))
		}
	}
}

// Reconcile fills or deletes one Secret.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	s, ok := c.secrets.Get(key)
	if !ok || s.DeletionTimestamp != nil || s.Type != corev1.SecretTypeServiceAccountToken {
		return controller.Result{}, nil
	}
	name := s.Annotations[corev1.ServiceAccountNameKey]
	if name == "" {
		return controller.Result{}, nil
	}
	sa, err := c.account(ctx, s, name)
	if err != nil {
		return controller.Result{}, err
	}
	if sa == nil || stale(s, sa) {
		if err := c.write.Delete(ctx, s.Namespace, s.Name, s.UID); err != nil && !apierrors.IsNotFound(err) &&
			!apierrors.IsConflict(err) {
			return controller.Result{},
				fmt.Errorf("deleting the token of a service account that is gone, %s: %w", key, err)
		}
		return controller.Result{}, nil
	}
	return controller.Result{}, c.fill(ctx, s, sa)
}

// stale reports whether the Secret belongs to an earlier account of the same name.
func stale(s *corev1.Secret, sa *corev1.ServiceAccount) bool {
	uid := s.Annotations[corev1.ServiceAccountUIDKey]
	return uid != "" && uid != string(sa.UID)
}

// account returns the service account, nil if the server confirms that there is none. The cached one is believed only
// if it is the one that the Secret is for: another one may have taken its name since, and a Secret that was filled for
// the earlier one would be deleted with it.
func (c *Controller) account(ctx context.Context, s *corev1.Secret, name string) (*corev1.ServiceAccount, error) {
	if sa, ok := c.accounts.Get(controller.Key{Namespace: s.Namespace, Name: name}); ok &&
		string(sa.UID) == s.Annotations[corev1.ServiceAccountUIDKey] {
		return sa, nil
	}
	sa, err := c.live.Get(ctx, s.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading service account %s/%s: %w", s.Namespace, name, err)
	}
	return sa, nil
}

// fill adds what is missing: token, CA, namespace and the account's uid.
func (c *Controller) fill(ctx context.Context, s *corev1.Secret, sa *corev1.ServiceAccount) error {
	needsCA := len(c.cfg.RootCA) > 0 && !bytes.Equal(s.Data[corev1.ServiceAccountRootCAKey], c.cfg.RootCA)
	needsToken := c.cfg.Signer != nil && len(s.Data[corev1.ServiceAccountTokenKey]) == 0
	needsUID := s.Annotations[corev1.ServiceAccountUIDKey] == ""
	if !needsCA && !needsToken && !needsUID && len(s.Data[corev1.ServiceAccountNamespaceKey]) > 0 {
		return nil
	}
	s = s.DeepCopy()
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	if needsCA {
		s.Data[corev1.ServiceAccountRootCAKey] = c.cfg.RootCA
	}
	if len(s.Data[corev1.ServiceAccountNamespaceKey]) == 0 {
		s.Data[corev1.ServiceAccountNamespaceKey] = []byte(s.Namespace)
	}
	if needsToken {
		token, err := c.cfg.Signer.Sign(claimsFor(sa, s))
		if err != nil {
			return fmt.Errorf("signing the token for %s/%s: %w", s.Namespace, s.Name, err)
		}
		s.Data[corev1.ServiceAccountTokenKey] = []byte(token)
	}
	s.Annotations[corev1.ServiceAccountUIDKey] = string(sa.UID)
	if _, err := c.write.Update(ctx, s); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("filling the token secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	return nil
}
