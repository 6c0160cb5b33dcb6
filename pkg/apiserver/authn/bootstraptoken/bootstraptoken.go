// Package bootstraptoken knows the bearer tokens with which new nodes join (--enable-bootstrap-token-auth): each is kept in a Secret of
// kube-system (https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/).
package bootstraptoken

import (
	"context"
	"crypto/subtle"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// The Secret's name, its keys, and whom it stands for.
const (
	secretPrefix = "bootstrap-token-"
	keyID        = "token-id"
	keySecret    = "token-secret"
	keyExpires   = "expiration" // RFC 3339; missing: never
	keyUsage     = "usage-bootstrap-authentication"
	keyGroups    = "auth-extra-groups" // separated by commas

	userPrefix = "system:bootstrap:"
	group      = "system:bootstrappers"
)

// Authenticator recognises bootstrap tokens.
type Authenticator struct {
	secrets registry.Getter
	now     func() time.Time
	token   *regexp.Regexp
	group   *regexp.Regexp
}

var _ authn.TokenAuthenticator = (*Authenticator)(nil)

// New returns an Authenticator that finds tokens among secrets.
func New(secrets registry.Getter, now func() time.Time) *Authenticator {
	return &Authenticator{secrets: secrets, now: now,
		token: regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})$`),
		group: regexp.MustCompile(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`)}
}

// AuthenticateToken implements authn.TokenAuthenticator. These tokens name no audience. Whatever is wrong with a Secret, its token is
// one that nobody knows: who tries tokens learns nothing. Only what is at hand is read, for whoever tries them is a stranger.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, _ []string) (*request.User, []string, error) {
	parts := a.token.FindStringSubmatch(token)
	if parts == nil {
		return nil, nil, nil
	}
	id, secret := parts[1], parts[2]
	obj, err := a.secrets.GetCached(ctx, metav1.NamespaceSystem, secretPrefix+id)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("looking for a bootstrap token: %w", err)
	}
	s, ok := obj.(*corev1.Secret)
	if !ok || !a.good(s, id, secret) {
		return nil, nil, nil
	}
	groups, ok := a.groups(s)
	if !ok {
		return nil, nil, nil
	}
	return &request.User{Name: userPrefix + id, Groups: groups}, nil, nil
}

// good: the Secret holds this token, and the token may be used to authenticate now.
func (a *Authenticator) good(s *corev1.Secret, id, secret string) bool {
	return s.Type == corev1.SecretTypeBootstrapToken && s.DeletionTimestamp == nil && string(s.Data[keyID]) == id &&
		subtle.ConstantTimeCompare(s.Data[keySecret], []byte(secret)) == 1 && string(s.Data[keyUsage]) == "true" && !a.expired(string(s.Data[keyExpires]))
}

// expired: a date that cannot be read has passed.
func (a *Authenticator) expired(date string) bool {
	if date == "" {
		return false
	}
	at, err := time.Parse(time.RFC3339, date)
	return err != nil || !a.now().Before(at)
}

// groups are those of the bearer; false if the Secret names one that bootstrap tokens may not have.
func (a *Authenticator) groups(s *corev1.Secret) ([]string, bool) {
	all := []string{group}
	for g := range strings.SplitSeq(string(s.Data[keyGroups]), ",") {
		if g == "" {
			continue
		}
		if !a.group.MatchString(g) {
			return nil, false
		}
		all = append(all, g)
	}
	return all, true
}
