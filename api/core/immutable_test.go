package core

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestImmutableMaps: kube-apiserver 1.36.3 tells {} from nothing in the bytes of what is immutable, and not in the
// texts.
func TestImmutableMaps(t *testing.T) {
	t.Parallel()
	is := new(true)
	old := &corev1.ConfigMap{Immutable: is}
	for name, c := range map[string]struct {
		obj  *corev1.ConfigMap
		errs int
	}{
		"the same":   {&corev1.ConfigMap{Immutable: is}, 0},
		"empty text": {&corev1.ConfigMap{Immutable: is, Data: map[string]string{}}, 0},
		"no bytes":   {&corev1.ConfigMap{Immutable: is, BinaryData: map[string][]byte{}}, 1},
	} {
		if errs := validateConfigMapUpdate(c.obj, old); len(errs) != c.errs {
			t.Errorf("%s: %v", name, errs)
		}
	}
	secret := &corev1.Secret{Type: corev1.SecretTypeOpaque, Immutable: is}
	if errs := validateSecretUpdate(
		&corev1.Secret{Type: corev1.SecretTypeOpaque, Immutable: is, Data: map[string][]byte{}}, secret); len(errs) !=
		1 {
		t.Errorf("a secret: %v", errs)
	}
}

// TestSecretsOfAccounts: nothing but their names is stored.
func TestSecretsOfAccounts(t *testing.T) {
	t.Parallel()
	row := serviceAccountRow()
	for _, prepare := range []func(*corev1.ServiceAccount){func(a *corev1.ServiceAccount) {
		row.Strategy.PrepareCreate(a)
	}, func(a *corev1.ServiceAccount) { row.Strategy.PrepareUpdate(a, a) }} {
		a := &corev1.ServiceAccount{
			Secrets: []corev1.ObjectReference{{Kind: "Secret", Namespace: "other", Name: "a", UID: "1"},
				{Kind: "Secret"}}}
		if prepare(a); a.Secrets[0] != (corev1.ObjectReference{Name: "a"}) ||
			a.Secrets[1] != (corev1.ObjectReference{}) {
			t.Errorf("%+v", a.Secrets)
		}
	}
}
