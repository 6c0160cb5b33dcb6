package imagepolicywebhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/apiserver/webhook"
	"bonsai/pkg/safetext"
)

// How often the webhook is asked that does not answer, how the waits between grow, and how long one try may take: as
// upstream.
const (
	tries      = 5
	waitFactor = 1.5
	jitter     = 0.2
	tryTimeout = 30 * time.Second
)

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 1 << 20

// backend is the webhook.
type backend struct {
	url     string
	client  *http.Client
	backoff time.Duration
}

// newBackend reads where the webhook is.
func newBackend(c *Configuration) (*backend, error) {
	to, err := clientcmd.BuildConfigFromFlags("", c.KubeConfigFile)
	if err != nil {
		return nil, fmt.Errorf("imagePolicy.kubeConfigFile: %w", safetext.URLError(err))
	}
	to.Timeout = tryTimeout
	client, err := rest.HTTPClientFor(to)
	if err != nil {
		return nil, fmt.Errorf("imagePolicy.kubeConfigFile %s: %w", c.KubeConfigFile, err)
	}
	// A webhook must not send the server to where the file does not.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &backend{url: to.Host, client: client, backoff: c.RetryBackoff}, nil
}

// ask posts a review, again while the webhook may answer later.
func (b *backend) ask(ctx context.Context, body []byte) (*imagepolicyv1alpha1.ImageReviewStatus, int, error) {
	pause := b.backoff
	for n := 1; ; n++ {
		status, size, again, err := b.post(ctx, body)
		if err = safetext.Error(err); err == nil || !again || n == tries {
			return status, size, err
		}
		spread := time.Duration(rand.Float64() * jitter * float64(pause)) //nolint:gosec // no secret
		t := time.NewTimer(pause + spread)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, 0, errors.Join(err, ctx.Err())
		}
		pause = time.Duration(float64(pause) * waitFactor)
	}
}

// post asks once. size is that of the answer; again reports whether a further try may succeed.
func (b *backend) post(ctx context.Context, body []byte) (_ *imagepolicyv1alpha1.ImageReviewStatus, size int,
	again bool, _ error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, bytes.NewReader(body))
	if err != nil {
		return nil, 0, false, safetext.URLError(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	answer, err := b.client.Do(r)
	if err != nil {
		return nil, 0, ctx.Err() == nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // everything was read, or the connection is given up
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch code := answer.StatusCode; {
	case err != nil:
		return nil, 0, ctx.Err() == nil, err
	case code < http.StatusOK || code > http.StatusPartialContent:
		return nil, 0, code == http.StatusTooManyRequests || code >= 500, webhook.Refusal(answer, text)
	case len(text) > maxAnswer:
		return nil, 0, false, fmt.Errorf("the answer of the image policy webhook is longer than %d bytes", maxAnswer)
	}
	var review imagepolicyv1alpha1.ImageReview
	if err := json.Unmarshal(text, &review); err != nil {
		return nil, 0, false, fmt.Errorf("the answer of the image policy webhook is no ImageReview: %w", err)
	}
	if review.Kind != reviewKind || review.APIVersion != reviewVersion {
		return nil, 0, false, fmt.Errorf("the answer of the image policy webhook is of kind %q of %q, and not an %s of %s",
			review.Kind, review.APIVersion, reviewKind, reviewVersion)
	}
	return &review.Status, len(text), false, nil
}
