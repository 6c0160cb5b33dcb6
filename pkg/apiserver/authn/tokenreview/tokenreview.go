// Package tokenreview asks a webhook whose a bearer token is (--authentication-token-webhook-config-file): the server
// sends it a TokenReview, and believes its status.
package tokenreview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/request"
)

// How often the webhook is asked that does not answer, how long the waits between are, and how long one try may take:
// as upstream.
const (
	tries         = 5
	firstWait     = 500 * time.Millisecond
	waitFactor    = 1.5
	jitter        = 0.2
	tryTimeout    = 10 * time.Second
	maxRetryAfter = 10 * time.Second
)

// Bounds.
const (
	maxAnswer = 1 << 20 // bytes
	// maxToken bounds what is sent, in bytes.
	maxToken = 64 << 10
	// maxAsked and maxWaiting bound the reviews under way and those that wait for their turn: whoever sends made-up
	// tokens holds no more than that, and those beyond fail at once.
	maxAsked   = 100
	maxWaiting = 1000
)

// Config is what an Authenticator needs.
type Config struct {
	// File is a kubeconfig that says where the webhook is, and by what it knows the server.
	File string
	// Version is that of the TokenReview: "v1" or "v1beta1".
	Version string
	// APIAudiences are the API server's own: a webhook that names no audiences speaks of them.
	APIAudiences []string
}

// Versions are those of TokenReview.
func Versions() []string { return []string{"v1", "v1beta1"} }

// Authenticator asks the webhook for each token. Put authn.CacheRefusals before it.
type Authenticator struct {
	url        string
	client     *http.Client
	apiVersion string
	own        []string
	turns      chan struct{} // holds one for each review under way
	waiting    chan struct{} // and one for each that is under way or waits
	firstWait  time.Duration
}

var _ authn.TokenAuthenticator = (*Authenticator)(nil)

// New returns an Authenticator.
func New(cfg Config) (*Authenticator, error) {
	to, err := clientcmd.BuildConfigFromFlags("", cfg.File)
	if err != nil {
		return nil, err
	}
	to.Timeout = tryTimeout
	client, err := rest.HTTPClientFor(to)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.File, err)
	}
	// A webhook must not have the token sent to where the file does not say.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Authenticator{url: to.Host, client: client,
		apiVersion: authenticationv1.GroupName + "/" + cfg.Version, own: cfg.APIAudiences,
		turns:   make(chan struct{}, maxAsked),
		waiting: make(chan struct{}, maxAsked+maxWaiting), firstWait: firstWait}, nil
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
	done, err := a.turn(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	status, err := a.ask(ctx, body)
	if err != nil {
		return nil, nil, fmt.Errorf("the webhook for tokens: %w", err)
	}
	return a.believe(status, audiences)
}

// turn waits for a turn, which done ends.
func (a *Authenticator) turn(ctx context.Context) (done func(), err error) {
	select {
	case a.waiting <- struct{}{}:
	default:
		return nil, errors.New("the webhook for tokens: too many tokens wait for it")
	}
	select {
	case a.turns <- struct{}{}:
		return func() { <-a.turns; <-a.waiting }, nil
	case <-ctx.Done():
		<-a.waiting
		return nil, ctx.Err()
	}
}

// believe makes the answer of a status.
func (a *Authenticator) believe(s *authenticationv1.TokenReviewStatus, audiences []string) (*request.User, []string,
	error) {
	if !s.Authenticated {
		if s.Error != "" {
			return nil, nil, errors.New(s.Error)
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

// ask posts a review, again while the webhook may answer later.
func (a *Authenticator) ask(ctx context.Context, body []byte) (*authenticationv1.TokenReviewStatus, error) {
	pause := a.firstWait
	for n := 1; ; n++ {
		status, again, err := a.post(ctx, body)
		if err == nil || again < 0 || n == tries {
			return status, err
		}
		spread := time.Duration(rand.Float64() * jitter * float64(pause)) //nolint:gosec // no secret
		t := time.NewTimer(max(again, pause+spread))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, errors.Join(err, ctx.Err())
		}
		pause = time.Duration(float64(pause) * waitFactor)
	}
}

// never is the wait after the last try.
const never = -1

// post asks once. After an error, again is how long the next try waits at least; never: there is none.
func (a *Authenticator) post(ctx context.Context, body []byte) (_ *authenticationv1.TokenReviewStatus,
	again time.Duration, _ error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return nil, never, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	answer, err := a.client.Do(r)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) && ctx.Err() == nil {
			return nil, 0, err
		}
		return nil, never, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch code := answer.StatusCode; {
	case code == http.StatusTooManyRequests || code >= 500:
		return nil, retryAfter(answer.Header), fmt.Errorf("it answered %s", answer.Status)
	case code != http.StatusOK && code != http.StatusCreated:
		return nil, never, fmt.Errorf("it answered %s", answer.Status)
	case err != nil:
		return nil, never, err
	case len(text) > maxAnswer:
		return nil, never, fmt.Errorf("its answer has more than %d bytes", maxAnswer)
	}
	var review authenticationv1.TokenReview
	if err := json.Unmarshal(text, &review); err != nil {
		return nil, never, fmt.Errorf("its answer is no TokenReview: %w", err)
	}
	if review.Kind != "TokenReview" || review.APIVersion != a.apiVersion {
		return nil, never, fmt.Errorf("its answer is of kind %q of %q, and not a TokenReview of %s", review.Kind,
			review.APIVersion, a.apiVersion)
	}
	return &review.Status, never, nil
}

// retryAfter is the wait that an answer asks for.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}
