// Package tokenreview asks a webhook whose a bearer token is (--authentication-token-webhook-config-file): the server
// sends it a TokenReview, and believes its status.
package tokenreview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/reviewclient"
	"bonsai/pkg/safetext"
)

// tryTimeout is how long one try may take, as upstream.
const tryTimeout = 10 * time.Second

// maxToken bounds what is sent, in bytes.
const maxToken = 64 << 10

// Config is what an Authenticator needs.
type Config struct {
	// File is a kubeconfig that says where the webhook is, and by what it knows the server.
	File string
	// Version is that of the TokenReview: "v1" or "v1beta1".
	Version string
	// APIAudiences are the API server's own: a webhook that names no audiences speaks of them.
	APIAudiences []string
	// FirstWait is the wait after the first failure. Default: upstream's.
	FirstWait time.Duration
	// Dial opens the connections through a proxy; nil: they are direct.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Versions are those of TokenReview.
func Versions() []string { return []string{"v1", "v1beta1"} }

// Authenticator asks the webhook for each token. Put authn.CacheRefusals before it.
type Authenticator struct {
	client     *reviewclient.Client
	apiVersion string
	own        []string
}

var _ authn.TokenAuthenticator = (*Authenticator)(nil)

// New returns an Authenticator.
func New(cfg Config) (*Authenticator, error) {
	client, err := reviewclient.New(reviewclient.Config{File: cfg.File, Timeout: tryTimeout, FirstWait: cfg.FirstWait,
		Dial: cfg.Dial})
	if err != nil {
		return nil, err
	}
	return &Authenticator{client: client, apiVersion: authenticationv1.GroupName + "/" + cfg.Version,
		own: cfg.APIAudiences}, nil
}

// AuthenticateToken implements authn.TokenAuthenticator.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, audiences []string) (*request.User,
	[]string, error) {
	if len(token) > maxToken {
		return nil, nil, fmt.Errorf("the token has more than %d bytes, and is not sent to the webhook", maxToken)
	}
	if len(audiences) == 0 {
		audiences = a.own
	}
	review := authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{Kind: "TokenReview", APIVersion: a.apiVersion},
		Spec:     authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
	body, err := json.Marshal(&review)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a token review: %w", err)
	}
	answer, err := a.client.Post(ctx, body)
	if err != nil {
		return nil, nil, fmt.Errorf("the webhook for tokens: %w", err)
	}
	status, err := a.read(answer)
	if err != nil {
		return nil, nil, fmt.Errorf("the webhook for tokens: %w", safetext.Error(err))
	}
	return a.believe(status, audiences)
}

// believe makes the answer of a status.
func (a *Authenticator) believe(s *authenticationv1.TokenReviewStatus, audiences []string) (*request.User, []string,
	error) {
	if !s.Authenticated {
		if s.Error != "" {
			return nil, nil, errors.New(safetext.Message(s.Error))
		}
		return nil, nil, nil
	}
	if s.User.Username == "" {
		return nil, nil, errors.New("the webhook for tokens names no user")
	}
	got := a.own // of a webhook that knows nothing of audiences
	if len(s.Audiences) > 0 {
		got = s.Audiences
	}
	both := authn.Intersect(audiences, got)
	if len(both) == 0 {
		return nil, nil, nil
	}
	u := &request.User{Name: s.User.Username, UID: s.User.UID, Groups: s.User.Groups}
	for k, v := range s.User.Extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[k] = v
	}
	return u, both, nil
}

// read returns the status of an answer.
func (a *Authenticator) read(answer []byte) (*authenticationv1.TokenReviewStatus, error) {
	var review authenticationv1.TokenReview
	if err := json.Unmarshal(answer, &review); err != nil {
		return nil, fmt.Errorf("its answer is no TokenReview: %w", err)
	}
	if review.Kind != "TokenReview" || review.APIVersion != a.apiVersion {
		return nil, fmt.Errorf("its answer is of kind %q of %q, and not a TokenReview of %s", review.Kind,
			review.APIVersion, a.apiVersion)
	}
	return &review.Status, nil
}
