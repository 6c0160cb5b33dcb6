package images

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// dockerHub is the name under which credentials for the default registry are kept.
const dockerHub = "https://index.docker.io/v1/"

type dockerEntry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// Credential is one way to pull an image, with its owner: a secret, a service account or, with neither, the node.
type Credential struct {
	Auth runtime.Auth
	// Secret is the pull secret that it is from, Account the service account whose token a credential provider was
	// shown.
	Secret, Account *Coordinates
}

// Coordinates name an object for good.
type Coordinates struct{ UID, Namespace, Name string }

// Keyed is a credential under a key that selects the images it is for: a registry, with wildcards in its host, a port
// if it has one, and an optional path.
type Keyed struct {
	Key string
	Credential
}

// Fitting returns those credentials that are for an image, the most specific first
// (https://kubernetes.io/docs/concepts/containers/images/#config-json). The order is that of the keys, backwards: of
// two keys for one host the longer path comes first. The sort is stable, so credentials with the same key keep their
// order.
func Fitting(ref string, all []Keyed) ([]Credential, error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return nil, fmt.Errorf("parse image name %q: %w", ref, err)
	}
	found := slices.DeleteFunc(slices.Clone(all), func(k Keyed) bool {
		return !matches(k.Key, reference.Domain(named), reference.Path(named))
	})
	slices.SortStableFunc(found, func(a, b Keyed) int { return strings.Compare(b.Key, a.Key) })
	out := make([]Credential, 0, len(found))
	for _, f := range found {
		out = append(out, f.Credential)
	}
	return out, nil
}

// Match reports whether an image is one of those that key is for.
func Match(key, ref string) bool {
	fit, err := Fitting(ref, []Keyed{{Key: key}})
	return err == nil && len(fit) == 1
}

// credentials returns those credentials in the secrets that fit the image. Unreadable secrets are an error; the others
// are returned with it.
func credentials(ref string, secrets []corev1.Secret) ([]Credential, error) {
	var all []Keyed
	var errs []error
	for i := range secrets {
		s := &secrets[i]
		entries, err := entriesOf(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("secret %s/%s: %w", s.Namespace, s.Name, err))
			continue
		}
		for key, e := range entries {
			all = append(all, Keyed{key,
				Credential{Auth: auth(key, e), Secret: &Coordinates{string(s.UID), s.Namespace, s.Name}}})
		}
	}
	out, err := Fitting(ref, all)
	return out, errors.Join(append(errs, err)...)
}

func entriesOf(s *corev1.Secret) (map[string]dockerEntry, error) {
	entries := map[string]dockerEntry{}
	var err error
	switch s.Type {
	case corev1.SecretTypeDockerConfigJson:
		var file struct {
			Auths map[string]dockerEntry `json:"auths"`
		}
		err = json.Unmarshal(s.Data[corev1.DockerConfigJsonKey], &file)
		entries = file.Auths
	case corev1.SecretTypeDockercfg:
		err = json.Unmarshal(s.Data[corev1.DockerConfigKey], &entries)
	}
	if err != nil {
		return nil, errors.New("its registry configuration is not valid JSON") // the cause could quote the secret
	}
	return entries, nil
}

func auth(key string, e dockerEntry) runtime.Auth {
	a := runtime.Auth{Username: e.Username, Password: e.Password, ServerAddress: key, IdentityToken: e.IdentityToken,
		RegistryToken: e.RegistryToken}
	if e.Auth != "" {
		if b, err := base64.StdEncoding.DecodeString(e.Auth); err == nil {
			if user, pass, ok := strings.Cut(string(b), ":"); ok {
				a.Username, a.Password = user, strings.TrimRight(pass, "\x00")
			}
		}
	}
	return a
}

// matches reports whether credentials kept under key are for that registry and path. A wildcard stands for one label of
// the host or a part of it, never for several: "*.io" does not match "a.b.io". So credentials do not reach hosts that
// the owner of the secret did not think of.
func matches(key, domain, repo string) bool {
	if key == dockerHub || key == "docker.io" || key == "index.docker.io" {
		return domain == "docker.io"
	}
	if !strings.Contains(key, "://") {
		key = "https://" + key
	}
	u, err := url.Parse(key)
	if err != nil {
		return false
	}
	want, have := strings.Split(u.Host, "."), strings.Split(domain, ".")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if ok, err := path.Match(want[i], have[i]); err != nil || !ok {
			return false
		}
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix == "v1" || prefix == "v2" {
		prefix = ""
	}
	return prefix == "" || repo == prefix || strings.HasPrefix(repo, prefix+"/")
}

// Fingerprint identifies the content of pull secrets: a pull that failed with others says nothing of these. It is a
// hash, so that the kubelet can keep it without keeping the secrets. Quoting keeps two different contents from giving
// the same text.
func Fingerprint(secrets []corev1.Secret) string {
	h := sha256.New()
	for i := range secrets {
		s := &secrets[i]
		for _, key := range slices.Sorted(maps.Keys(s.Data)) {
			fmt.Fprintf(h, "%q %q %q\n", s.Name, key, s.Data[key])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
