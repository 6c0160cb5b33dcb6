package delegated

import (
	"context"
	"log/slog"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
)

// askTimeout is how long a review by the API server may take.
const askTimeout = 10 * time.Second

// Client asks the API server. It knows three kinds and no more.
type Client struct {
	maps     *apiclient.Resource[*corev1.ConfigMap]
	tokens   *apiclient.Resource[*authnv1.TokenReview]
	accesses *apiclient.Resource[*authzv1.SubjectAccessReview]
}

var (
	_ TokenReviewer  = (*Client)(nil)
	_ AccessReviewer = (*Client)(nil)
)

// NewClient returns a client with the identity of config; nothing is sent yet.
func NewClient(config *rest.Config) (*Client, error) {
	s, err := apiclient.NewScheme(
		apiclient.Only(corev1.SchemeGroupVersion, &corev1.ConfigMap{}, &corev1.ConfigMapList{}),
		apiclient.Only(authnv1.SchemeGroupVersion, &authnv1.TokenReview{}),
		apiclient.Only(authzv1.SchemeGroupVersion, &authzv1.SubjectAccessReview{}))
	if err != nil {
		return nil, err
	}
	cfg := rest.CopyConfig(config)
	cfg.Timeout = 0 // watches are long
	following, err := apiclient.New(cfg, s)
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(config)
	cfg.Timeout = askTimeout
	c, err := apiclient.New(cfg, s)
	if err != nil {
		return nil, err
	}
	return &Client{
		maps:   core.ConfigMaps(following),
		tokens: apiclient.NewResource(c, authnv1.SchemeGroupVersion, "tokenreviews", &authnv1.TokenReview{}),
		accesses: apiclient.NewResource(c, authzv1.SchemeGroupVersion, "subjectaccessreviews",
			&authzv1.SubjectAccessReview{}),
	}, nil
}

// ReviewToken implements TokenReviewer.
func (c *Client) ReviewToken(ctx context.Context, r *authnv1.TokenReview) (*authnv1.TokenReview, error) {
	return c.tokens.Create(ctx, r)
}

// ReviewAccess implements AccessReviewer.
func (c *Client) ReviewAccess(ctx context.Context, r *authzv1.SubjectAccessReview) (*authzv1.SubjectAccessReview,
	error) {
	return c.accesses.Create(ctx, r)
}

// Published returns what the API server publishes for the servers behind it; nothing is asked before it runs.
func (c *Client) Published(log *slog.Logger) *Published {
	return &Published{maps: c.maps, log: log}
}
