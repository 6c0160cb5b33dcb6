// Package bootstraptoken knows the bearer tokens with which new nodes join (--enable-bootstrap-token-auth): each is
// kept in a Secret of kube-system (https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/).
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

	"bonsai/api/bootstraptoken"
	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// Whom a token stands for.
const (
	userPrefix = "system:bootstrap:"
	group      = "system:bootstrappers"
)

// Authenticator recognises bootstrap tokens.
type Authenticator struct {
	secrets registry.Getter
	now     func() time.Time
	group   *regexp.Regexp
}

var _ authn.TokenAuthenticator = (*Authenticator)(nil)

// New returns an Authenticator that finds tokens among secrets.
func New(secrets registry.Getter, now func() time.Time) *Authenticator {
	return &Authenticator{secrets: secrets, now: now,
		group: regexp.MustCompile(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`)}
}

// AuthenticateToken implements authn.TokenAuthenticator. These tokens name no audience. Whatever is wrong with a
// Secret, its token counts as unknown, so that guessing tokens reveals nothing. It reads only cached Secrets: anybody
// may send tokens, and must not cause reads of etcd.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, _ []string) (*request.User, []string,
	error) {
	t, err := bootstraptoken.Parse(token)
	if err != nil {
		return nil, nil, nil
	}
	obj, err := a.secrets.GetCached(ctx, metav1.NamespaceSystem, bootstraptoken.SecretPrefix+t.ID)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("looking for a bootstrap token: %w", err)
	}
	s, ok := obj.(*corev1.Secret)
	if !ok || !a.good(s, t) {
		return nil, nil, nil
	}
	groups, ok := a.groups(s)
	if !ok {
		return nil, nil, nil
	}
	return &request.User{Name: userPrefix + t.ID, Groups: groups}, nil, nil
}

// good: the Secret holds this token, and the token may be used to authenticate now.
func (a *Authenticator) good(s *corev1.Secret, t bootstraptoken.Token) bool {
	return s.Type == corev1.SecretTypeBootstrapToken && s.DeletionTimestamp == nil &&
		string(s.Data[bootstraptoken.KeyID]) == t.ID &&
		subtle.ConstantTimeCompare(s.Data[bootstraptoken.KeySecret], []byte(t.Secret)) == 1 &&
		string(s.Data[bootstraptoken.KeyAuthentication]) == "true" &&
		!a.expired(string(s.Data[bootstraptoken.KeyExpiration]))
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
	for g := range strings.SplitSeq(string(s.Data[bootstraptoken.KeyGroups]), ",") {
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
