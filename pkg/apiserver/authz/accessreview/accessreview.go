// Package accessreview asks a webhook what a caller may do (the authorization mode Webhook): the server sends it a
// SubjectAccessReview, and believes its status.
package accessreview

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/reviewclient"
	"bonsai/pkg/safetext"
)

const (
	// cacheSize is the number of answers that are remembered.
	cacheSize = 8192
	// maxRemembered is the length of a reason, in bytes, from which on an answer is not remembered.
	maxRemembered = 10_000
	// maxSpec bounds what is sent, in bytes.
	maxSpec = 1 << 20
)

// Config is what an Authorizer needs.
type Config struct {
	// Name is that of the authorizer in metrics.
	Name string
	// File is a kubeconfig that says where the webhook is; "": it is the API server of the cluster that this process is
	// a pod of.
	File string
	// Timeout is for one try.
	Timeout time.Duration
	// Version is that of the SubjectAccessReview: "v1" or "v1beta1".
	Version string
	// AuthorizedTTL and UnauthorizedTTL are how long answers are remembered; 0: they are not.
	AuthorizedTTL, UnauthorizedTTL time.Duration
	// OnError is the decision when the webhook cannot be asked: authz.NoOpinion or authz.Deny.
	OnError authz.Decision
	// Conditions select the requests that the webhook is asked about.
	Conditions Conditions
	// Metrics counts; nil: nobody does.
	Metrics *Metrics
	// FirstWait is the wait after the first failure. Default: upstream's.
	FirstWait time.Duration
	// Dial opens the connections through a proxy; nil: they are direct.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Versions are those of SubjectAccessReview.
func Versions() []string { return []string{"v1", "v1beta1"} }

// Authorizer asks one webhook. It is safe for concurrent use.
type Authorizer struct {
	cfg        Config
	apiVersion string
	client     *reviewclient.Client
	// answers are those that are remembered, by the hash of the question: nothing that the webhook sees may be missing
	// in it, or one caller would get another's answer.
	answers *cache.LRUExpireCache
}

var (
	_ authz.Authorizer = (*Authorizer)(nil)
	_ authz.Lister     = (*Authorizer)(nil)
)

// New returns an Authorizer.
func New(cfg Config) (*Authorizer, error) {
	apiVersion := authorizationv1.GroupName + "/" + cfg.Version
	client, err := reviewclient.New(reviewclient.Config{File: cfg.File, Dial: cfg.Dial,
		InClusterPath: "/apis/" + apiVersion + "/subjectaccessreviews", Timeout: cfg.Timeout, FirstWait: cfg.FirstWait})
	if err != nil {
		return nil, err
	}
	return &Authorizer{cfg: cfg, apiVersion: apiVersion, client: client,
		answers: cache.NewLRUExpireCache(cacheSize)}, nil
}

var errBoth = errors.New("webhook subject access review returned both allow and deny response")

// Authorize implements authz.Authorizer.
func (a *Authorizer) Authorize(ctx context.Context, at authz.Attributes) (authz.Decision, string, error) {
	spec := specOf(&at)
	if matches, err := a.matches(ctx, spec); err != nil {
		return a.cfg.OnError, "", err
	} else if !matches {
		return authz.NoOpinion, "", nil
	}
	status, err := a.status(ctx, spec)
	if err != nil {
		return a.cfg.OnError, "", err
	}
	switch {
	case status.Denied && status.Allowed:
		return authz.Deny, status.Reason, errBoth
	case status.Denied:
		return authz.Deny, status.Reason, nil
	case status.Allowed:
		return authz.Allow, status.Reason, nil
	}
	return authz.NoOpinion, status.Reason, nil
}

// status returns what the webhook says, or has said not long ago.
func (a *Authorizer) status(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (
	*authorizationv1.SubjectAccessReviewStatus, error) {
	body, err := a.encode(spec)
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(body)
	if known, ok := a.answers.Get(key); ok {
		if status, ok := known.(*authorizationv1.SubjectAccessReviewStatus); ok {
			return status, nil
		}
	}
	start := time.Now()
	status, err := a.ask(ctx, body)
	a.cfg.Metrics.asked(a.cfg.Name, resultOf(ctx, err), time.Since(start), err != nil && a.cfg.OnError != authz.Deny)
	if err != nil {
		return nil, err
	}
	ttl := a.cfg.UnauthorizedTTL
	if status.Allowed {
		ttl = a.cfg.AuthorizedTTL
	}
	if ttl > 0 && len(status.Reason) <= maxRemembered {
		a.answers.Add(key, status, ttl)
	}
	return status, nil
}

func (a *Authorizer) ask(ctx context.Context, body []byte) (*authorizationv1.SubjectAccessReviewStatus, error) {
	answer, err := a.client.Post(ctx, body)
	if err != nil {
		return nil, fmt.Errorf("the webhook for authorization: %w", err)
	}
	var review struct {
		metav1.TypeMeta
		Status authorizationv1.SubjectAccessReviewStatus `json:"status"`
	}
	if err := json.Unmarshal(answer, &review); err != nil {
		return nil, fmt.Errorf("the webhook for authorization: its answer is no SubjectAccessReview: %w",
			safetext.Error(err))
	}
	// As upstream: an answer that does not say what it is is what was asked for.
	if of := review.TypeMeta; (of != metav1.TypeMeta{}) &&
		(of != metav1.TypeMeta{Kind: "SubjectAccessReview", APIVersion: a.apiVersion}) {
		return nil, fmt.Errorf("the webhook for authorization: its answer is of kind %q of %q, and not a SubjectAccessReview of %s",
			safetext.Text(of.Kind), safetext.Text(of.APIVersion), a.apiVersion)
	}
	// Nobody gets it, and it may be as long as the answer: it must not be remembered.
	review.Status.EvaluationError = ""
	return &review.Status, nil
}

// encode returns the review of a spec.
func (a *Authorizer) encode(spec *authorizationv1.SubjectAccessReviewSpec) ([]byte, error) {
	of := metav1.TypeMeta{Kind: "SubjectAccessReview", APIVersion: a.apiVersion}
	var body []byte
	var err error
	if a.cfg.Version == "v1beta1" {
		body, err = json.Marshal(betaOf(of, spec))
	} else {
		body, err = json.Marshal(&authorizationv1.SubjectAccessReview{TypeMeta: of, Spec: *spec})
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("encode a subject access review: %w", err)
	case len(body) > maxSpec:
		return nil, fmt.Errorf("the request is described by more than %d bytes, and the webhook for authorization is not asked",
			maxSpec)
	}
	return body, nil
}

// resultOf is the label of what a webhook came to.
func resultOf(ctx context.Context, err error) string {
	var timeout net.Error
	switch {
	case err == nil:
		return "success"
	case errors.Is(ctx.Err(), context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	}
	return "error"
}

// ReviewRules implements authz.Lister: nobody can ask a webhook for all that it allows.
func (a *Authorizer) ReviewRules(context.Context, *request.User,
	string) authorizationv1.SubjectRulesReviewStatus {
	return authorizationv1.SubjectRulesReviewStatus{Incomplete: true,
		EvaluationError: "webhook authorizer does not support user rule resolution"}
}
