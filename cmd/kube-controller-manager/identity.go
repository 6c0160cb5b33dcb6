package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
)

// accountNamespace holds the controllers' service accounts.
const accountNamespace = "kube-system"

// accountClient returns a client that acts as a service account in kube-system, so that each controller can do only
// what its role allows. The account is made and its token requested with root's rights, at the first request. anonymous
// is the connection, which has no credentials of its own.
//
// A controller that is broken or misused can then do no more than its role allows, while the manager's own identity can
// fill every role.
func accountClient(ctx context.Context, root *apiclient.Client, anonymous *rest.Config, account string,
	s *runtime.Scheme) (*apiclient.Client, error) {
	cfg := rest.CopyConfig(anonymous)
	tokens := &tokenSource{ctx: ctx, accounts: core.ServiceAccounts(root), name: account, now: time.Now}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &bearer{tokens: tokens, next: next} })
	return apiclient.New(cfg, s)
}

// bearer adds the account's token to each request.
type bearer struct {
	tokens *tokenSource
	next   http.RoundTripper
}

// RoundTrip sends req with the token; after a 401 the next request asks for a new one.
//
// The 401 itself goes to the caller, whose loop tries again: a request with a body cannot always be sent twice.
func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := b.tokens.get()
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := b.next.RoundTrip(req)
	if err == nil && res.StatusCode == http.StatusUnauthorized {
		b.tokens.drop(token)
	}
	return res, err
}

// tokenSource keeps one account's token and renews it when four fifths of its life are over.
//
// mu is held during the request for a token: other requests of the controller wait for it instead of asking again.
type tokenSource struct {
	ctx      context.Context
	accounts *apiclient.Resource[*corev1.ServiceAccount]
	name     string
	now      func() time.Time

	mu    sync.Mutex
	token string
	renew time.Time
}

// tokenSeconds is the life of a requested token.
const tokenSeconds = 3600

func (t *tokenSource) get() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != "" && t.now().Before(t.renew) {
		return t.token, nil
	}
	// Not the request's own context: the token is for all requests that wait for it.
	ctx, cancel := context.WithTimeout(t.ctx, 10*time.Second)
	defer cancel()
	got, err := t.request(ctx)
	if apierrors.IsNotFound(err) {
		_, err = t.accounts.Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: accountNamespace, Name: t.name}})
		if err == nil || apierrors.IsAlreadyExists(err) {
			got, err = t.request(ctx)
		}
	}
	if err != nil {
		return "", fmt.Errorf("getting a token of service account %s/%s: %w", accountNamespace, t.name, err)
	}
	now := t.now()
	t.token, t.renew = got.Status.Token, now.Add(got.Status.ExpirationTimestamp.Sub(now)*4/5)
	return t.token, nil
}

func (t *tokenSource) request(ctx context.Context) (*authenticationv1.TokenRequest, error) {
	out := &authenticationv1.TokenRequest{}
	in := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	return out, t.accounts.CreateSub(ctx, accountNamespace, t.name, "token", in, out)
}

// drop forgets a token that the server refused.
func (t *tokenSource) drop(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == token {
		t.token = ""
	}
}
