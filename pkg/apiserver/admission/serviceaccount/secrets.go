package serviceaccount

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"bonsai/pkg/apiserver/admission"
)

// enforceMountable is the annotation that limits what the pods of a service account may use to what the account lists.
const enforceMountable = "kubernetes.io/enforce-mountable-secrets"

// limited reports whether the account limits its pods.
func limited(account *corev1.ServiceAccount) bool {
	yes, err := strconv.ParseBool(account.Annotations[enforceMountable])
	return err == nil && yes
}

// allowed is what the pods of an account that limits them may use.
type allowed struct {
	account           string
	secrets, pullFrom sets.Set[string]
}

func allowedBy(account *corev1.ServiceAccount) allowed {
	out := allowed{account.Name, sets.New[string](), sets.New[string]()}
	for _, s := range account.Secrets {
		out.secrets.Insert(s.Name)
	}
	for _, s := range account.ImagePullSecrets {
		out.pullFrom.Insert(s.Name)
	}
	return out
}

// pod refuses a new pod that uses other secrets.
func (l allowed) pod(a *admission.Attributes, spec *corev1.PodSpec) error {
	for i := range spec.Volumes {
		if err := l.volume(a, &spec.Volumes[i]); err != nil {
			return err
		}
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if err := l.container(a, "init container", c.Name, c.Env, c.EnvFrom); err != nil {
			return err
		}
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if err := l.container(a, "container", c.Name, c.Env, c.EnvFrom); err != nil {
			return err
		}
	}
	for i, s := range spec.ImagePullSecrets {
		if !l.pullFrom.Has(s.Name) {
			return admission.Forbid(a,
				"imagePullSecrets[%d].name=%q is not allowed because service account %s does not reference that imagePullSecret", i, s.Name, l.account)
		}
	}
	return nil
}

// ephemeral refuses containers that are added to a pod and use other secrets.
func (l allowed) ephemeral(a *admission.Attributes, containers []corev1.EphemeralContainer) error {
	for i := range containers {
		c := &containers[i].EphemeralContainerCommon
		if err := l.container(a, "ephemeral container", c.Name, c.Env, c.EnvFrom); err != nil {
			return err
		}
	}
	return nil
}

func (l allowed) volume(a *admission.Attributes, v *corev1.Volume) error {
	if v.Secret != nil && !l.secrets.Has(v.Secret.SecretName) {
		return admission.Forbid(a,
			"volume with secret.secretName=%q is not allowed because service account %s does not reference that secret",
			v.Secret.SecretName, l.account)
	}
	return nil
}

func (l allowed) container(a *admission.Attributes, what, name string, env []corev1.EnvVar,
	from []corev1.EnvFromSource) error {
	for i := range env {
		if v := env[i].ValueFrom; v != nil && v.SecretKeyRef != nil && !l.secrets.Has(v.SecretKeyRef.Name) {
			return admission.Forbid(a,
				"%s %s with envVar %s referencing secret.secretName=%q is not allowed because service account %s does not reference that secret",
				what, name, env[i].Name, v.SecretKeyRef.Name, l.account)
		}
	}
	for i := range from {
		if s := from[i].SecretRef; s != nil && !l.secrets.Has(s.Name) {
			return admission.Forbid(a,
				"%s %s with envFrom referencing secret.secretName=%q is not allowed because service account %s does not reference that secret",
				what, name, s.Name, l.account)
		}
	}
	return nil
}
