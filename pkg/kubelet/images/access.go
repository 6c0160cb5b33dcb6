package images

import (
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// Verification decides which images that are present a pod may use without showing that it could pull them
// (https://kubernetes.io/docs/concepts/containers/images/#ensureimagepullcredentialverification).
type Verification struct {
	Policy kubeletconfig.ImagePullCredentialsVerificationPolicy
	// Allowlist are the images of the policy NeverVerifyAllowlistedImages: names without tag or digest, or paths that
	// end in /*.
	Allowlist []string
}

// Check refuses unknown policies, and images that are no patterns.
func (v Verification) Check() error {
	switch v.Policy {
	case kubeletconfig.NeverVerify, kubeletconfig.NeverVerifyPreloadedImages, kubeletconfig.AlwaysVerify:
		if len(v.Allowlist) > 0 {
			return fmt.Errorf("preloadedImagesVerificationAllowlist must not be set with the policy %s", v.Policy)
		}
	case kubeletconfig.NeverVerifyAllowlistedImages:
		if len(v.Allowlist) == 0 {
			return fmt.Errorf("preloadedImagesVerificationAllowlist must be set with the policy %s", v.Policy)
		}
	default:
		return fmt.Errorf("imagePullCredentialsVerificationPolicy %q is not known", v.Policy)
	}
	for _, pattern := range v.Allowlist {
		bare := strings.TrimSuffix(pattern, "/*")
		named, err := reference.ParseNormalizedNamed(bare)
		if err != nil && !strings.Contains(bare, "/") && strings.HasSuffix(pattern, "/*") {
			_, err = reference.ParseNormalizedNamed(bare + "/x") // a registry with its port
		} else if err == nil && !reference.IsNameOnly(named) && strings.Contains(bare, "/") {
			err = fmt.Errorf("it has a tag or a digest")
		}
		if err != nil {
			return fmt.Errorf("preloadedImagesVerificationAllowlist: %q: %w", pattern, err)
		}
	}
	return nil
}

// Check is the result of the check whether a pod may use an image that is present, in the words of upstream's metric.
type Check string

// The results of a check: the pod needs no credential, it has one that is known to be good, it must pull the image to
// show that it may have it, or the check failed.
const (
	checkAllowed Check = "credentialPolicyAllowed"
	checkFound   Check = "credentialRecordFound"
	checkPull    Check = "mustAuthenticate"
	checkFailed  Check = "error"
)

// required reports whether a pod must show that it may have the image. pulled: this kubelet brought it to the node, or
// began to; other images were preloaded by the administrator.
func (v Verification) required(repo string, pulled bool) bool {
	switch v.Policy {
	case kubeletconfig.NeverVerify:
		return false
	case kubeletconfig.NeverVerifyAllowlistedImages:
		return pulled || !slices.ContainsFunc(v.Allowlist, func(pattern string) bool { return listed(pattern, repo) })
	case kubeletconfig.AlwaysVerify:
		return true
	default:
		return pulled
	}
}

func listed(pattern, repo string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "/*"); ok {
		return strings.HasPrefix(repo, prefix+"/")
	}
	return repository(pattern) == repo
}

// repository returns an image's full name without tag and digest: credentials are for a repository.
func repository(name string) string {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return name // names are parsed before they come here
	}
	return named.Name()
}

// allowed reports whether the credentials that an image was pulled with include one that the pod has: none was needed,
// one of its pull secrets, or its service account. again is the pod's secret if its content is recorded, but under
// another secret's name: the caller records it, too.
func allowed(rec *kubeletconfig.ImagePulledRecord, repo string, has []Credential,
	account func() (*corev1.ServiceAccount, error)) (ok bool, again *Credential, err error) {
	if rec == nil {
		return false, nil, nil
	}
	with, ok := rec.CredentialMapping[repo]
	if !ok {
		return false, nil, nil
	}
	if with.NodePodsAccessible {
		return true, nil, nil
	}
	for i := range has {
		c, hash := &has[i], credentialHash(&has[i])
		if !slices.ContainsFunc(with.KubernetesSecrets, func(s kubeletconfig.ImagePullSecret) bool {
			return s.CredentialHash == hash
		}) {
			continue
		}
		if !slices.Contains(with.KubernetesSecrets,
			kubeletconfig.ImagePullSecret{UID: c.Secret.UID, Namespace: c.Secret.Namespace, Name: c.Secret.Name,
				CredentialHash: hash}) {
			again = c
		}
		return true, again, nil
	}
	if len(with.KubernetesServiceAccounts) == 0 {
		return false, nil, nil
	}
	a, err := account()
	if err != nil || a == nil {
		return false, nil, err
	}
	own := kubeletconfig.ImagePullServiceAccount{UID: string(a.UID), Namespace: a.Namespace, Name: a.Name}
	return slices.Contains(with.KubernetesServiceAccounts, own), nil, nil
}
