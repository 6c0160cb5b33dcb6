package serviceaccount

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/admission"
)

// TestEnforceMountableSecrets: pods of an account that limits them use no other secrets than it lists, not in a
// container that is added later either (CVE-2023-2728).
func TestEnforceMountableSecrets(t *testing.T) {
	t.Parallel()
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	env := func(secret string) []corev1.EnvVar {
		return []corev1.EnvVar{{Name: "PLAIN", Value: "x"},
			{Name: "V", ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local(secret)}}}}
	}
	from := func(secret string) []corev1.EnvFromSource {
		return []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("any")}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local(secret)}}}
	}
	volume := func(secret string) []corev1.Volume {
		return []corev1.Volume{{Name: "e"},
			{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}}
	}
	common := func(env []corev1.EnvVar, from []corev1.EnvFromSource) []corev1.EphemeralContainer {
		return []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "c", Env: env, EnvFrom: from}}}
	}
	const not = ` is not allowed because service account a does not reference that `
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"a volume": {corev1.PodSpec{Volumes: volume("other")},
			`volume with secret.secretName="other"` + not + `secret`},
		"a variable": {corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Env: env("other")}}},
			`container c with envVar V referencing secret.secretName="other"` + not + `secret`},
		"variables": {corev1.PodSpec{Containers: []corev1.Container{{Name: "c", EnvFrom: from("other")}}},
			`container c with envFrom referencing secret.secretName="other"` + not + `secret`},
		"an init variable": {corev1.PodSpec{InitContainers: []corev1.Container{{Name: "c", Env: env("other")}}},
			`init container c with envVar V referencing secret.secretName="other"` + not + `secret`},
		"init variables": {
			corev1.PodSpec{InitContainers: []corev1.Container{{Name: "c", EnvFrom: from("other")}}},
			`init container c with envFrom referencing secret.secretName="other"` + not + `secret`},
		"a pull secret": {
			corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{local("pull"), local("good")}},
			`imagePullSecrets[1].name="good"` + not + `imagePullSecret`},
		"an ephemeral variable": {corev1.PodSpec{EphemeralContainers: common(env("other"), nil)},
			`ephemeral container c with envVar V referencing secret.secretName="other"` + not + `secret`},
		"ephemeral variables": {corev1.PodSpec{EphemeralContainers: common(nil, from("other"))},
			`ephemeral container c with envFrom referencing secret.secretName="other"` + not + `secret`},
		"what is listed": {corev1.PodSpec{Volumes: volume("good"),
			Containers:       []corev1.Container{{Env: env("good"), EnvFrom: from("good")}},
			InitContainers:   []corev1.Container{{Env: env("good")}},
			ImagePullSecrets: []corev1.LocalObjectReference{local("pull")}}, ""},
		"what is listed, ephemeral": {corev1.PodSpec{EphemeralContainers: common(env("good"), from("good"))}, ""},
	} {
		for value, enforced := range map[string]bool{"true": true, "false": false, "nonsense": false} {
			account := &corev1.ServiceAccount{
				ObjectMeta: metav1.ObjectMeta{Name: "a",
					Annotations: map[string]string{"kubernetes.io/enforce-mountable-secrets": value}},
				Secrets:          []corev1.ObjectReference{{Name: "good"}},
				ImagePullSecrets: []corev1.LocalObjectReference{local("pull")},
			}
			a := &admission.Attributes{Operation: admission.Create,
				Resource: corev1.SchemeGroupVersion.WithResource("pods"), Namespace: "ns", Name: "p"}
			if len(c.spec.EphemeralContainers) > 0 {
				a.Operation, a.Subresource = admission.Update, "ephemeralcontainers"
			}
			c.spec.ServiceAccountName = "a"
			a.Object = &corev1.Pod{Spec: c.spec}
			err := New(Config{ServiceAccounts: accounts{"a": account}}).Validator.Validate(t.Context(), a)
			want := c.want
			if !enforced {
				want = ""
			}
			if (err != nil) != (want != "") ||
				err != nil && !strings.HasSuffix(err.Error(), `pods "p" is forbidden: `+want) {
				t.Errorf("%s, annotation %s: %v, want %q", name, value, err, want)
			}
		}
	}
}
