package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// Config is what an Authenticator needs.
type Config struct {
	// Keys verify tokens; Issuers are the accepted values of "iss" (--service-account-issuer, all of them).
	Keys    Keys
	Issuers []string
	// APIAudiences are the API server's own, asked for where a caller names none.
	APIAudiences []string
	// A token is good only as long as the objects it is bound to exist. Nil Getters are not asked.
	ServiceAccounts, Pods, Secrets, Nodes registry.Getter
	// Used notes the day on which the token of a secret was used; nil: nobody does.
	Used func(ctx context.Context, s *corev1.Secret, day string) error
	// Metrics counts the tokens that are good; nil: nobody does.
	Metrics *Metrics
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Authenticator checks service account tokens.
type Authenticator struct{ cfg Config }

var _ authn.TokenAuthenticator = (*Authenticator)(nil)

// New returns an Authenticator.
func New(cfg Config) *Authenticator {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Authenticator{cfg: cfg}
}

// Errors of tokens that are ours and not valid.
var (
	errExpired   = errors.New("service account token has expired")
	errNotYet    = errors.New("service account token is not valid yet")
	errInvalid   = errors.New("service account token has been invalidated")
	errSignature = errors.New("service account token: the signature is not one of our keys'")
	errClaims    = errors.New("service account token: the claims are not valid")
)

// maxToken bounds what is parsed, in bytes.
const maxToken = 16 << 10

// AuthenticateToken implements authn.TokenAuthenticator. The issuer is read before the signature is verified, only to
// decide whose token it is: a token of another issuer is left to other authenticators and is no error. Nothing else is
// used from unverified claims, because verify fills them in again.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, audiences []string) (*request.User,
	[]string, error) {
	algs := a.cfg.Keys.Algorithms()
	if len(algs) == 0 || len(token) > maxToken || strings.Count(token, ".") != 2 {
		return nil, nil, nil
	}
	parsed, err := jwt.ParseSigned(token, algs)
	if err != nil {
		return nil, nil, nil // not a web token of our algorithms: another's
	}
	var public jwt.Claims
	var private privateClaims
	var legacy legacyClaims
	if parsed.UnsafeClaimsWithoutVerification(&public) != nil {
		return nil, nil, nil
	}
	if public.Issuer != legacyIssuer && !slices.Contains(a.cfg.Issuers, public.Issuer) {
		return nil, nil, nil
	}
	if err := a.verify(ctx, parsed, &public, &private, &legacy); err != nil {
		return nil, nil, err
	}
	if audiences == nil {
		audiences = a.cfg.APIAudiences
	}
	if public.Issuer == legacyIssuer {
		u, err := a.legacyUser(ctx, token, &public, &legacy)
		return u, a.cfg.APIAudiences, err
	}
	both := authn.Intersect(audiences, public.Audience)
	if len(both) == 0 {
		return nil, nil, fmt.Errorf("token audiences %q is invalid for the target audiences %q",
			[]string(public.Audience), audiences)
	}
	u, err := a.boundUser(ctx, &public, private.Kubernetes)
	if err != nil {
		return nil, nil, err
	}
	return u, both, nil
}

// verify tries the keys that may have signed the token, and fills the claims in.
func (a *Authenticator) verify(ctx context.Context, t *jwt.JSONWebToken, claims ...any) error {
	header := &t.Headers[0]
	for _, k := range a.cfg.Keys.For(ctx, header.KeyID) {
		if header.Algorithm == string(k.Algorithm) && t.Claims(k.Key, claims...) == nil {
			return nil
		}
	}
	return errSignature
}

// boundUser checks the times and every object a token is bound to, and returns its user. The cheap checks come before
// those that read objects. The caller has verified the signature.
func (a *Authenticator) boundUser(ctx context.Context, public *jwt.Claims, b *bound) (*request.User, error) {
	now := a.cfg.Now()
	switch {
	case b == nil || b.Namespace == "" || b.ServiceAccount.Name == "" || b.ServiceAccount.UID == "":
		return nil, errClaims
	case public.Subject != username(b.Namespace, b.ServiceAccount.Name):
		return nil, errClaims
	case public.Expiry == nil || !now.Before(public.Expiry.Time()):
		return nil, errExpired
	case public.NotBefore != nil && now.Before(public.NotBefore.Time()):
		return nil, errNotYet
	}
	type check struct {
		getter registry.Getter
		kind   string
		ns     string
		ref    *Ref
	}
	checks := []check{
		{a.cfg.ServiceAccounts, "service account", b.Namespace, &b.ServiceAccount},
		{a.cfg.Secrets, "secret", b.Namespace, b.Secret},
		{a.cfg.Pods, "pod", b.Namespace, b.Pod},
	}
	if b.Pod == nil { // beside a pod the node is only told
		checks = append(checks, check{a.cfg.Nodes, "node", "", b.Node})
	}
	for _, c := range checks {
		if c.ref == nil || c.getter == nil {
			continue
		}
		if err := exists(ctx, c.getter, c.ns, *c.ref, now); err != nil {
			return nil, fmt.Errorf("%w: the %s %s/%s it is bound to: %w", errInvalid, c.kind, c.ns, c.ref.Name, err)
		}
	}
	a.cfg.Metrics.bound(b.WarnAfter != nil && now.After(b.WarnAfter.Time()))
	if b.WarnAfter != nil && now.After(b.WarnAfter.Time()) {
		request.Annotate(ctx, "authentication.k8s.io/stale-token",
			fmt.Sprintf("subject: %s, seconds after warning threshold: %.0f", public.Subject,
				now.Sub(b.WarnAfter.Time()).Seconds()))
	}
	return boundIdentity(public.ID, b), nil
}

func boundIdentity(id string, b *bound) *request.User {
	u := user(b.Namespace, b.ServiceAccount.Name, b.ServiceAccount.UID)
	u.Extra = map[string][]string{}
	if id != "" {
		u.Extra[extraCredentialID] = []string{"JTI=" + id}
	}
	if b.Pod != nil {
		u.Extra[extraPodName] = []string{b.Pod.Name}
		u.Extra[extraPodUID] = []string{string(b.Pod.UID)}
	}
	if b.Node != nil {
		u.Extra[extraNodeName] = []string{b.Node.Name}
		if b.Node.UID != "" {
			u.Extra[extraNodeUID] = []string{string(b.Node.UID)}
		}
	}
	return u
}

func user(ns, name string, uid types.UID) *request.User {
	return &request.User{Name: username(ns, name), UID: string(uid), Groups: groups(ns)}
}

// goneAfter is how long a token outlives the beginning of its object's end, so that what stops can still say good-bye.
const goneAfter = time.Minute

// exists checks that the object is there with ref's UID. The cached state is asked first, the newest one only before
// saying no. The cache may lag behind, and a pod uses its token right after its creation. An object that was deleted
// may pass for as long as the cache lags.
func exists(ctx context.Context, g registry.Getter, ns string, ref Ref, now time.Time) error {
	check := func(get func(ctx context.Context, ns, name string) (runtime.Object, error)) error {
		obj, err := get(ctx, ns, ref.Name)
		if err != nil {
			return err
		}
		m, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		if m.GetUID() != ref.UID {
			return errors.New("the UID does not match the claim")
		}
		if ended(m, now) {
			return errors.New("is deleted")
		}
		return nil
	}
	if check(g.GetCached) == nil {
		return nil
	}
	return check(g.Get)
}

func ended(m metav1.Object, now time.Time) bool {
	d := m.GetDeletionTimestamp()
	return d != nil && now.After(d.Add(goneAfter))
}
