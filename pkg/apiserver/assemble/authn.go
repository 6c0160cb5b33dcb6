package assemble

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/authn/anonymous"
	"bonsai/pkg/apiserver/authn/bootstraptoken"
	"bonsai/pkg/apiserver/authn/oidc"
	"bonsai/pkg/apiserver/authn/requestheader"
	"bonsai/pkg/apiserver/authn/serviceaccount"
	"bonsai/pkg/apiserver/authn/serviceaccount/externaljwt"
	"bonsai/pkg/apiserver/authn/tokenfile"
	"bonsai/pkg/apiserver/authn/tokenreview"
	"bonsai/pkg/apiserver/authn/x509"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/configfile"
	"bonsai/pkg/apiserver/egress/selector"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/authorities"
	"bonsai/pkg/frontproxy"
)

// The cache of tokens that were found good: what is revoked may live that much longer.
const (
	tokenCacheTTL  = 10 * time.Second
	tokenCacheSize = 4096
)

// Authentication says who is known. File names may be "".
type Authentication struct {
	ClientCA, TokenFile string
	// Anonymous lets requests without credentials reach health and version and, with BootstrapTokens, what they sign.
	Anonymous bool
	// AnonymousFlag reports that somebody has chosen Anonymous: then ConfigFile must not.
	AnonymousFlag bool
	// BootstrapTokens lets new nodes in with the tokens that Secrets of kube-system hold.
	BootstrapTokens bool
	// Issuers are those of service account tokens: the first makes them, all are accepted. Audiences are the API's own;
	// nil: the first issuer.
	Issuers, Audiences []string
	// SigningKey signs tokens, AccountKeys verify them; nil: with the key that signs.
	SigningKey  string
	AccountKeys []string
	// External is another process that signs tokens and knows the keys that verify them, in place of the files; nil:
	// there is none.
	External *externaljwt.Signer
	// JWKSURI is where the keys are found from outside; "": at this server.
	JWKSURI string
	// AccountLookup checks that what a token is bound to is there.
	AccountLookup, ExtendTokens bool
	MaxTokenExpiration          time.Duration
	RequestHeader               RequestHeader
	// OIDC is one OpenID provider whose tokens are accepted; one without an issuer is none.
	OIDC oidc.Flags
	// ConfigFile names the OpenID providers, and the paths that anonymous requests may have.
	ConfigFile string
	// Webhook is asked about tokens that nothing else knows.
	Webhook TokenWebhook
}

// TokenWebhook is a webhook that knows bearer tokens. ConfigFile is a kubeconfig; "": there is none.
type TokenWebhook struct {
	ConfigFile, Version string
	// CacheTTL is how long its answers are remembered; 0: they are not.
	CacheTTL time.Duration
}

// RequestHeader says which front proxies may name a user, and in which headers.
type RequestHeader struct {
	CA                                           string
	AllowedNames                                 []string
	Usernames, UIDs, Groups, ExtraHeaderPrefixes []string
}

// authentication is everything about who asks.
type authentication struct {
	authenticator authn.Authenticator
	tokens        authn.TokenAuthenticator
	issuer        *serviceaccount.Issuer
	audiences     []string
	// keys are the handlers of the issuer's discovery documents, by path.
	keys map[string]http.Handler
	// jwt knows the tokens of OpenID providers; nil: there are none.
	jwt *oidc.Authenticator
	// clientCA and proxyCA are what TLS asks clients to present a certificate of; nil without the flags.
	clientCA, proxyCA *authorities.File
}

// newAuthentication builds the union: front proxy, client certificates, token file, service accounts, bootstrap tokens,
// OpenID providers, webhook; anonymous last, for health, version and discovery, or for the paths that a file names.
func newAuthentication(o *Options, c *catalog.Catalog, log *slog.Logger) (*authentication, error) {
	cfg := &o.Authentication
	if len(cfg.Issuers) == 0 {
		return nil, errors.New("authentication: an issuer of service account tokens is needed")
	}
	a := &authentication{audiences: cfg.Audiences}
	if len(a.audiences) == 0 {
		a.audiences = cfg.Issuers[:1]
	}
	var list []authn.Authenticator
	if h := &cfg.RequestHeader; h.CA != "" {
		ca, err := authorities.NewFile(h.CA, log)
		if err != nil {
			return nil, fmt.Errorf("--requestheader-client-ca-file: %w", err)
		}
		a.proxyCA = ca
		list = append(list, requestheader.New(requestheader.Config{CA: ca, AllowedNames: h.AllowedNames,
			Headers: frontproxy.Headers{UsernameHeaders: h.Usernames, UIDHeaders: h.UIDs, GroupHeaders: h.Groups,
				ExtraHeaderPrefixes: h.ExtraHeaderPrefixes}}))
	}
	if cfg.ClientCA != "" {
		ca, err := authorities.NewFile(cfg.ClientCA, log)
		if err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		a.clientCA = ca
		list = append(list, x509.New(x509.Config{CA: ca, Metrics: o.Metrics}))
	}
	if err := a.addTokens(o, c, log); err != nil {
		return nil, err
	}
	list = append(list, authn.Bearer(a.tokens))
	a.authenticator = authn.WithAuthenticatedGroup(authn.Union(list...))
	if open := a.open(cfg); open != nil {
		a.authenticator = authn.OrElse(a.authenticator, anonymous.Authenticator{Open: open})
	}
	return a, nil
}

// open reports which paths are open to requests without credentials; nil: none ever is. The flag, and a file that names
// no paths, open those that tell nothing of the cluster's objects.
func (a *authentication) open(cfg *Authentication) func(path string) bool {
	paths := anonymous.HealthAndVersion()
	if cfg.BootstrapTokens {
		paths = append(paths, anonymous.Discovery()...)
	}
	usual := anonymous.Only(paths...)
	if a.jwt == nil {
		if !cfg.Anonymous {
			return nil
		}
		return usual
	}
	return func(path string) bool {
		configured := a.jwt.Anonymous()
		switch {
		case configured == nil:
			return cfg.Anonymous && usual(path)
		case !configured.Enabled:
			return false
		case len(configured.Conditions) == 0:
			return usual(path)
		}
		return slices.ContainsFunc(configured.Conditions,
			func(c oidc.AnonymousCondition) bool { return c.Path == path })
	}
}

// runs are what authentication does beside requests.
func (a *authentication) runs() []func(context.Context) error {
	if a.jwt == nil {
		return nil
	}
	return []func(context.Context) error{a.jwt.Run}
}

// authorities are those whose certificates say who asks.
func (a *authentication) authorities() *authorities.Set {
	var files []authorities.Source
	for _, f := range []*authorities.File{a.clientCA, a.proxyCA} {
		if f != nil {
			files = append(files, f)
		}
	}
	return authorities.Of(files...)
}

// addTokens builds what knows bearer tokens, and the issuer of service account tokens.
func (a *authentication) addTokens(o *Options, c *catalog.Catalog, log *slog.Logger) error {
	in := &o.Authentication
	var tokens []authn.TokenAuthenticator
	if in.TokenFile != "" {
		t, err := tokenfile.Open(in.TokenFile)
		if err != nil {
			return fmt.Errorf("--token-auth-file: %w", err)
		}
		tokens = append(tokens, t)
	}
	signing, keys, err := in.signing()
	if err != nil {
		return err
	}
	issuer := serviceaccount.IssuerConfig{URL: in.Issuers[0], Signer: signing, APIAudiences: a.audiences,
		MaxLifetime: in.MaxTokenExpiration, Extend: in.ExtendTokens}
	if in.External != nil {
		issuer.MaxExtended = in.External.MaxLifetime()
		if issuer.MaxLifetime == 0 {
			issuer.MaxLifetime = in.External.MaxLifetime()
		}
	}
	if a.issuer, err = serviceaccount.NewIssuer(issuer); err != nil {
		return err
	}
	cfg := serviceaccount.Config{Keys: keys, Issuers: in.Issuers, APIAudiences: a.audiences,
		Metrics: serviceaccount.NewMetrics(o.Metrics), Log: log,
		Used: noteUse(late(c)("", "secrets"))}
	if in.AccountLookup {
		store := late(c)
		cfg.ServiceAccounts, cfg.Pods, cfg.Secrets, cfg.Nodes = store("", "serviceaccounts"), store("", "pods"),
			store("", "secrets"), store("", "nodes")
	}
	cached := authn.NewCacheMetrics(o.Metrics)
	tokens = append(tokens, authn.Cache(serviceaccount.New(cfg), tokenCacheTTL, tokenCacheSize, cached))
	if in.BootstrapTokens {
		tokens = append(tokens, bootstraptoken.New(late(c)("", "secrets"), time.Now))
	}
	if tokens, err = a.addOutside(tokens, o, cached, log); err != nil {
		return err
	}
	a.tokens = authn.Tokens(tokens...)
	configuration, jwks := serviceaccount.Discovery(in.Issuers[0], o.keysURI(), keys)
	a.keys = map[string]http.Handler{serviceaccount.ConfigurationPath: configuration, serviceaccount.JWKSPath: jwks}
	return nil
}

// addOutside adds what knows the tokens that others issue. It comes after all tokens of the cluster's own: those that
// are good are checked without asking anybody outside, and no webhook sees them. One that is not good here, such as
// that of a service account for another audience, goes to the webhook as any other, as in Kubernetes.
func (a *authentication) addOutside(tokens []authn.TokenAuthenticator, o *Options, cached *authn.CacheMetrics,
	log *slog.Logger) ([]authn.TokenAuthenticator, error) {
	in := &o.Authentication
	var err error
	options := oidc.Options{AccountIssuers: in.Issuers, AnonymousFlag: in.AnonymousFlag, Egress: o.Egress.Lookup(),
		Metrics: oidc.NewMetrics(o.Metrics, o.Hostname), Cache: cached,
		Reloads: configfile.NewMetrics(o.Metrics, "authentication", o.Hostname), Log: log}
	switch {
	case in.ConfigFile != "":
		if a.jwt, err = oidc.Open(in.ConfigFile, options); err != nil {
			return nil, fmt.Errorf("--authentication-config %s: %w", in.ConfigFile, err)
		}
	case in.OIDC.IssuerURL != "":
		if a.jwt, err = oidc.New(in.OIDC, options); err != nil {
			return nil, err
		}
	}
	if a.jwt != nil {
		tokens = append(tokens, a.jwt)
	}
	if h := &in.Webhook; h.ConfigFile != "" {
		asked, err := tokenreview.New(tokenreview.Config{File: h.ConfigFile, Version: h.Version,
			APIAudiences: a.audiences, Dial: o.Egress.Dial(selector.ControlPlane)})
		if err != nil {
			return nil, fmt.Errorf("--authentication-token-webhook-config-file: %w", err)
		}
		var webhook authn.TokenAuthenticator = asked
		if h.CacheTTL > 0 {
			webhook = authn.CacheRefusals(asked, h.CacheTTL, tokenCacheSize, cached)
		}
		tokens = append(tokens, webhook)
	}
	return tokens, nil
}

// noteUse returns what labels a secret with the day on which its token was used.
func noteUse(secrets registry.Store) func(context.Context, *corev1.Secret, string) error {
	return func(ctx context.Context, s *corev1.Secret, day string) error {
		_, err := secrets.Admitted().Update(request.AsServer(ctx), s.Namespace, s.Name, "",
			func(obj runtime.Object) (runtime.Object, error) {
				now, ok := obj.(*corev1.Secret)
				if !ok || now.UID != s.UID {
					return nil, fmt.Errorf("the secret %s/%s is another now", s.Namespace, s.Name)
				}
				if now.Labels == nil {
					now.Labels = map[string]string{}
				}
				now.Labels[serviceaccount.LabelLastUsed] = day
				return now, nil
			}, &metav1.UpdateOptions{})
		return err
	}
}

// keysURI is where the keys are found from outside: where the options say, or the address this server is reached at.
func (o *Options) keysURI() string {
	if o.Authentication.JWKSURI != "" {
		return o.Authentication.JWKSURI
	}
	return "https://" + net.JoinHostPort(o.Advertise.String(), strconv.Itoa(o.Port)) + serviceaccount.JWKSPath
}

// signing returns what signs service account tokens, and the keys that verify them.
func (a *Authentication) signing() (serviceaccount.Signer, serviceaccount.Keys, error) {
	if a.External != nil {
		if limit := a.External.MaxLifetime(); a.MaxTokenExpiration > limit {
			return nil, nil, fmt.Errorf("service-account-max-token-expiration cannot be set longer than the token expiration supported by service-account-signing-endpoint: %s > %s",
				a.MaxTokenExpiration, limit)
		}
		return a.External, a.External, nil
	}
	key, err := serviceaccount.LoadSigningKey(a.SigningKey)
	if err != nil {
		return nil, nil, fmt.Errorf("--service-account-signing-key-file: %w", err)
	}
	signer, err := serviceaccount.NewSigner(key)
	if err != nil {
		return nil, nil, fmt.Errorf("--service-account-signing-key-file: %w", err)
	}
	keys, err := verifyingKeys(a.AccountKeys, key)
	return signer, keys, err
}

func verifyingKeys(files []string, signer crypto.Signer) (serviceaccount.FixedKeys, error) {
	if len(files) > 0 {
		keys, err := serviceaccount.LoadPublicKeys(files...)
		if err != nil {
			return nil, fmt.Errorf("--service-account-key-file: %w", err)
		}
		return keys, nil
	}
	key, err := serviceaccount.NewPublicKey(signer.Public())
	if err != nil {
		return nil, fmt.Errorf("--service-account-signing-key-file: %w", err)
	}
	return serviceaccount.FixedKeys{key}, nil
}
