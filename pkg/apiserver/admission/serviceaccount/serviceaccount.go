// Package serviceaccount is the admission plug-in ServiceAccount: every pod runs as a service account that exists, gets
// its pull secrets, and finds its token, the cluster's authorities and its namespace in a projected volume. An account
// may limit its pods to the secrets that it lists.
package serviceaccount

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/api/podspec"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
)

// Config is what the plug-in needs.
type Config struct {
	ServiceAccounts registry.Getter
	// Suffix returns five random characters of Kubernetes' alphabet, for the volume's name.
	Suffix func() string
	// Wait is how long a pod waits for the account "default" of a namespace that was made just now; 0: not at all.
	Wait time.Duration
}

const defaultAccount = "default"

type plugin struct{ cfg Config }

// New returns the plug-in.
func New(cfg Config) admission.Plugin {
	return admission.Plugin{Name: "ServiceAccount", Mutator: plugin{cfg}, Validator: plugin{cfg}}
}

func podOf(a *admission.Attributes) *corev1.Pod {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is(corev1.Resource("pods")) || a.Operation != admission.Create {
		return nil
	}
	return pod
}

func isMirror(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return ok
}

// Admit implements admission.Mutator. Mirror pods are not changed: what they stand for runs already.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	if isMirror(pod) {
		return validateMirror(a, pod)
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = pod.Spec.DeprecatedServiceAccount
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = defaultAccount
	}
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	account, err := p.account(ctx, a, pod.Spec.ServiceAccountName)
	if err != nil {
		return err
	}
	if automount(pod, account) {
		mountToken(&pod.Spec, p.cfg.Suffix)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, account.ImagePullSecrets...)
	}
	return nil
}

// Validate implements admission.Validator. It reads the account once more: a webhook may have put another one into the
// pod since Admit.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if pod, ok := a.Object.(*corev1.Pod); ok && a.Is(corev1.Resource("pods/ephemeralcontainers")) &&
		a.Operation == admission.Update {
		return p.validateEphemeral(ctx, a, pod)
	}
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	if isMirror(pod) {
		return validateMirror(a, pod)
	}
	account, err := p.account(ctx, a, pod.Spec.ServiceAccountName)
	if err != nil || !limited(account) {
		return err
	}
	return allowedBy(account).pod(a, &pod.Spec)
}

// validateEphemeral: what the pod's account keeps from its pods, it keeps from containers that come later
// (CVE-2023-2728).
func (p plugin) validateEphemeral(ctx context.Context, a *admission.Attributes, pod *corev1.Pod) error {
	if isMirror(pod) {
		return nil
	}
	account, err := p.account(ctx, a, pod.Spec.ServiceAccountName)
	if err != nil || !limited(account) {
		return err
	}
	return allowedBy(account).ephemeral(a, pod.Spec.EphemeralContainers)
}

// validateMirror: a mirror pod must not give its node a way to what other pods have.
func validateMirror(a *admission.Attributes, pod *corev1.Pod) error {
	for r := range podspec.References(pod) {
		switch {
		case r.Resource == podspec.RefServiceAccounts && r.Name != "":
			return admission.Forbid(a, "a mirror pod may not reference service accounts")
		case r.Resource == podspec.RefSecrets:
			return admission.Forbid(a, "a mirror pod may not reference secrets")
		}
	}
	for i := range pod.Spec.Volumes {
		if p := pod.Spec.Volumes[i].Projected; p != nil &&
			slices.ContainsFunc(p.Sources, func(s corev1.VolumeProjection) bool {
				return s.ServiceAccountToken != nil
			}) {
			return admission.Forbid(a, "a mirror pod may not use ServiceAccountToken volume projections")
		}
	}
	return nil
}

// pollEvery is how often a missing account "default" is looked for.
const pollEvery = 50 * time.Millisecond

func (p plugin) account(ctx context.Context, a *admission.Attributes, name string) (*corev1.ServiceAccount, error) {
	account, err := registry.Find[*corev1.ServiceAccount](ctx, p.cfg.ServiceAccounts, a.Namespace, name)
	if apierrors.IsNotFound(err) && name == defaultAccount && p.cfg.Wait > 0 {
		account, err = p.wait(ctx, a.Namespace, err)
	}
	if apierrors.IsNotFound(err) {
		// in the singular, as Kubernetes has it here
		err = apierrors.NewNotFound(corev1.Resource("serviceaccount"), name)
	}
	if err != nil {
		return nil, admission.Forbid(a, "error looking up service account %s/%s: %w", a.Namespace, name, err)
	}
	return account, nil
}

// wait looks for the account "default" again and again; err is what is said if it does not come. A controller makes the
// account a moment after the namespace, and clients often create pods right away. Errors of the reads are left aside:
// the wait has its own end.
func (p plugin) wait(ctx context.Context, ns string, err error) (*corev1.ServiceAccount, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Wait)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C:
		}
		obj, _ := p.cfg.ServiceAccounts.GetCached(ctx, ns, defaultAccount)
		if account, ok := obj.(*corev1.ServiceAccount); ok {
			return account, nil
		}
	}
}
