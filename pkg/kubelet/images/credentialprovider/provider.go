package credentialprovider

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/distribution/reference"
	"golang.org/x/sync/singleflight"
	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1"
	credentialv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/runtime"
)

// Accounts are the API server's service accounts, for providers that are shown a pod's token.
type Accounts interface {
	ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)
	CreateToken(ctx context.Context, namespace, account string, req *authnv1.TokenRequest) (*authnv1.TokenRequest,
		error)
}

// Config is what Providers need. All is required but Metrics.
type Config struct {
	// Providers are what ReadConfig returned; BinDir holds their programs.
	Providers []kubeletconfig.CredentialProvider
	BinDir    string
	Accounts  Accounts
	Metrics   *Metrics
	Now       func() time.Time
	Log       *slog.Logger
}

// Providers are the node's credential providers.
type Providers struct {
	cfg    Config
	list   []*provider
	tokens *tokens
}

var _ images.Providers = (*Providers)(nil)

// provider is one of them. asked lets pulls that want the same answer at the same time run the program once.
type provider struct {
	*kubeletconfig.CredentialProvider
	path  string
	asked singleflight.Group
	known *cache
}

// New looks for the programs.
func New(cfg Config) (*Providers, error) {
	all := &Providers{cfg: cfg, tokens: newTokens(cfg.Accounts, cfg.Now)}
	for i := range cfg.Providers {
		p := &provider{CredentialProvider: &cfg.Providers[i], path: filepath.Join(cfg.BinDir, cfg.Providers[i].Name),
			known: newCache(cfg.Now)}
		if info, err := os.Stat(p.path); err != nil {
			return nil, fmt.Errorf("--image-credential-provider-bin-dir: the program of provider %s: %w", p.Name, err)
		} else if info.IsDir() {
			return nil, fmt.Errorf("--image-credential-provider-bin-dir: the program of provider %s is a directory",
				p.Name)
		}
		all.list = append(all.list, p)
	}
	return all, nil
}

// Credentials implements images.Providers. A provider that fails has none. Providers run one after the other, each for
// at most runTimeout. A failure is only logged: the image may be public, or another source may have credentials.
func (a *Providers) Credentials(ctx context.Context, pod *corev1.Pod, image string) []images.Credential {
	var found []images.Keyed
	for _, p := range a.list {
		if !slices.ContainsFunc(p.MatchImages, func(m string) bool { return images.Match(m, image) }) {
			continue
		}
		got, err := a.ask(ctx, p, pod, image)
		if err != nil {
			a.cfg.Log.Error("no credentials of a provider", "provider", p.Name, "pod", pod.Namespace+"/"+pod.Name,
				"image", image, "err", err)
			continue
		}
		found = append(found, got...)
	}
	fitting, err := images.Fitting(image, found)
	if err != nil {
		a.cfg.Log.Error("no credentials for an image", "image", image, "err", err)
	}
	return fitting
}

// caller is for whom a provider that is shown tokens is asked. Nobody is a caller, too.
type caller struct {
	account     *corev1.ServiceAccount // nil: nobody
	token       string
	annotations map[string]string
	// key distinguishes callers whose credentials are not each other's.
	key string
}

// ask returns a provider's answer for an image, from the cache if it still holds. The program runs with the ctx of the
// first caller. If that one gives up, the others get its error and ask again with their next pull. Errors are not kept.
func (a *Providers) ask(ctx context.Context, p *provider, pod *corev1.Pod, image string) ([]images.Keyed, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return nil, fmt.Errorf("parse image name %q: %w", image, err)
	}
	who, skip, err := a.callerFor(ctx, p, pod)
	if err != nil || skip {
		return nil, err
	}
	if r, ok := p.known.get(who.key, named); ok {
		return keyed(r, who), nil
	}
	flight := who.key + " " + named.Name()
	if who.token != "" {
		flight += " " + string(pod.UID) // whether pods may share an answer is known when it is there
	}
	answer, err, _ := p.asked.Do(flight, func() (any, error) {
		begun := a.cfg.Now()
		r, err := execute(ctx, p.path, p.CredentialProvider,
			&credentialv1.CredentialProviderRequest{Image: image, ServiceAccountToken: who.token,
				ServiceAccountAnnotations: who.annotations})
		a.cfg.Metrics.ran(p.Name, a.cfg.Now().Sub(begun), err)
		if err != nil {
			return nil, err
		}
		keep := p.DefaultCacheDuration.Duration
		if r.CacheDuration != nil {
			keep = r.CacheDuration.Duration
		}
		p.known.put(who.key, named, r, keep)
		return r, nil
	})
	if err != nil {
		return nil, fmt.Errorf("run the credential provider: %w", err)
	}
	return keyed(answer.(*credentialv1.CredentialProviderResponse), who), nil
}

func keyed(r *credentialv1.CredentialProviderResponse, who caller) []images.Keyed {
	var out []images.Keyed
	for key, auth := range r.Auth {
		k := images.Keyed{Key: key,
			Credential: images.Credential{
				Auth: runtime.Auth{Username: auth.Username, Password: auth.Password, ServerAddress: key}}}
		if who.account != nil {
			k.Account = &images.Coordinates{UID: string(who.account.UID), Namespace: who.account.Namespace,
				Name: who.account.Name}
		}
		out = append(out, k)
	}
	return out
}

// callerFor returns what the provider is to be shown of the pod's service account; skip: it is not asked for this pod.
// The key has everything that may change the answer: with less, one account could get the credentials of another. It
// has the UID, because an account that was deleted and created again is another one. Where answers are kept by token,
// the token enters as a hash, so that the cache holds no tokens.
func (a *Providers) callerFor(ctx context.Context, p *provider, pod *corev1.Pod) (who caller, skip bool, err error) {
	t := p.TokenAttributes
	if t == nil {
		return caller{}, false, nil
	}
	if pod.Spec.ServiceAccountName == "" {
		return caller{}, *t.RequireServiceAccount, nil
	}
	if who.account, err = a.cfg.Accounts.ServiceAccount(ctx, pod.Namespace, pod.Spec.ServiceAccountName); err != nil {
		return caller{}, false, fmt.Errorf("get the service account: %w", err)
	}
	who.annotations = map[string]string{}
	for _, key := range t.RequiredServiceAccountAnnotationKeys {
		v, ok := who.account.Annotations[key]
		if !ok {
			return caller{}, false, fmt.Errorf("required annotation %s not found in service account %s/%s", key,
				pod.Namespace, pod.Spec.ServiceAccountName)
		}
		who.annotations[key] = v
	}
	for _, key := range t.OptionalServiceAccountAnnotationKeys {
		if v, ok := who.account.Annotations[key]; ok {
			who.annotations[key] = v
		}
	}
	if who.token, err = a.tokens.get(ctx, pod, t.ServiceAccountTokenAudience); err != nil {
		return caller{}, false, fmt.Errorf("get a token of the service account: %w", err)
	}
	of := []any{who.account.Namespace, who.account.Name, who.account.UID, who.annotations}
	if t.CacheType == kubeletconfig.TokenServiceAccountTokenCacheType {
		of = append(of, sha256.Sum256([]byte(who.token)))
	}
	key, err := json.Marshal(of)
	if err != nil {
		return caller{}, false, errors.New("encode the service account")
	}
	who.key = string(key)
	return who, false, nil
}
