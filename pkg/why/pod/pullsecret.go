package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// pullSecrets explains credentials that a registry does not get: the pod names no Secret, one that is missing or of
// another type, or one for another registry. Of a Secret it shows the names of registries alone.
func pullSecrets(ctx context.Context, q *inquiry, image string, denied bool) (causes []why.Cause) {
	host := registryOf(image)
	for _, ref := range q.pod.Spec.ImagePullSecrets {
		s, known := why.Get[corev1.Secret](ctx, q.World, q.pod.Namespace, ref.Name)
		o := why.Object{Kind: "Secret", Namespace: q.pod.Namespace, Name: ref.Name}
		switch {
		case s == nil && known:
			causes = append(causes, why.Cause{Code: "PullSecretMissing",
				Text: fmt.Sprintf("The Secret %s, which imagePullSecrets names, does not exist in namespace %s.",
					ref.Name, q.pod.Namespace),
				Evidence: []why.Evidence{why.Absent("Secret", q.pod.Namespace, ref.Name)}})
		case s == nil || !denied:
		case s.Type != corev1.SecretTypeDockerConfigJson && s.Type != corev1.SecretTypeDockercfg:
			causes = append(causes, why.Cause{Code: "PullSecretType",
				Text: fmt.Sprintf("The Secret %s, which imagePullSecrets names, is of type %s: the kubelet takes none of it. It "+
					"must be of type %s.", ref.Name, s.Type, corev1.SecretTypeDockerConfigJson),
				Evidence: []why.Evidence{why.See(o, ".type", string(s.Type))},
				Fixes: []why.Fix{{Text: "Make it again.", Command: why.Command("kubectl create secret docker-registry %s%s "+
					"--docker-server=%s --docker-username=USER --docker-password=PASSWORD", ref.Name, o.Flag(), host)}}})
		default:
			registries := registriesOf(s)
			if slices.ContainsFunc(registries, func(r string) bool { return covers(r, host) }) {
				continue
			}
			causes = append(causes, why.Cause{Code: "PullSecretOtherRegistry",
				Text: fmt.Sprintf("The Secret %s has credentials for %s, and the image is in the registry %s.", ref.Name,
					why.And(registries), host),
				Evidence: []why.Evidence{why.See(o, ".data", why.And(registries))}})
		}
	}
	if denied && len(q.pod.Spec.ImagePullSecrets) == 0 {
		causes = append(causes, why.Cause{Code: "NoPullSecret", Text: "The pod names no imagePullSecrets, and its service " +
			"account gives it none: the node pulls without credentials of the pod.",
			Evidence: []why.Evidence{why.See(q.self, ".spec.imagePullSecrets", "not set")}})
	}
	return causes
}

// registryOf is the registry of an image: the part before the first slash if it looks like a host, or else Docker Hub.
func registryOf(image string) string {
	first, _, more := strings.Cut(image, "/")
	if more && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return first
	}
	return "docker.io"
}

// registriesOf are the registries that a Secret has credentials for.
func registriesOf(s *corev1.Secret) []string {
	var file struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if s.Type == corev1.SecretTypeDockercfg {
		if json.Unmarshal(s.Data[corev1.DockerConfigKey], &file.Auths) != nil {
			return nil
		}
	} else if json.Unmarshal(s.Data[corev1.DockerConfigJsonKey], &file) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(file.Auths))
}

// covers reports whether credentials for a registry are used for a host: they may have a scheme, a path and a star.
func covers(registry, host string) bool {
	registry = strings.TrimPrefix(strings.TrimPrefix(registry, "https://"), "http://")
	registry, _, _ = strings.Cut(registry, "/")
	if rest, ok := strings.CutPrefix(registry, "*"); ok {
		return strings.HasSuffix(host, rest)
	}
	return registry == host || registry == "index.docker.io" && host == "docker.io"
}
