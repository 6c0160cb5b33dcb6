// Package reviewclient posts reviews to a webhook that decides about a request: TokenReviews to one that knows tokens,
// SubjectAccessReviews to one that knows rights. A kubeconfig says where the webhook is and by what it knows the
// server; certificate and token files that it names are read again when they change.
//
// A webhook may be dead, slow or hostile: how many reviews are under way and wait, how long each takes and how long an
// answer may be are bounded, and what errors repeat of it. It cannot redirect a review.
package reviewclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/safetext"
)

// How often a webhook is asked that fails, and how long the waits between are: as upstream.
const (
	tries         = 5
	firstWait     = 500 * time.Millisecond
	waitFactor    = 1.5
	jitter        = 0.2
	maxRetryAfter = 10 * time.Second
)

// Bounds.
const (
	// maxAnswer is in bytes.
	maxAnswer = 1 << 20
	// maxAsked and maxWaiting bound the reviews under way and those that wait for their turn. Callers who send made-up
	// requests hold no more than that, and those beyond fail at once.
	maxAsked   = 100
	maxWaiting = 1000
)

// Config says where a webhook is.
type Config struct {
	// File is a kubeconfig; "": the webhook is the API server of the cluster that this process runs in as a pod, at
	// InClusterPath.
	File, InClusterPath string
	// Timeout is for one try.
	Timeout time.Duration
	// FirstWait is the wait after the first failure. Default: upstream's 500 ms.
	FirstWait time.Duration
	// Dial opens the connections through a proxy; nil: they are direct.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Client posts reviews. It is safe for concurrent use.
type Client struct {
	url       string
	client    *http.Client
	turns     chan struct{} // holds one for each review under way
	waiting   chan struct{} // and one for each that is under way or waits
	firstWait time.Duration
}

// New reads the kubeconfig.
func New(cfg Config) (*Client, error) {
	to, path, err := cfg.to()
	if err != nil {
		return nil, err
	}
	to.Timeout, to.Dial = cfg.Timeout, cfg.Dial
	client, err := rest.HTTPClientFor(to)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.File, err)
	}
	// A webhook must not have the review, with its token, sent to where the file does not say.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if cfg.FirstWait == 0 {
		cfg.FirstWait = firstWait
	}
	return &Client{url: to.Host + path, client: client, turns: make(chan struct{}, maxAsked),
		waiting: make(chan struct{}, maxAsked+maxWaiting), firstWait: cfg.FirstWait}, nil
}

func (cfg *Config) to() (*rest.Config, string, error) {
	if cfg.File == "" {
		to, err := rest.InClusterConfig()
		return to, cfg.InClusterPath, err
	}
	to, err := clientcmd.BuildConfigFromFlags("", cfg.File)
	return to, "", safetext.URLError(err)
}

// Post sends a review, again while the webhook may answer later, and returns its answer.
func (c *Client) Post(ctx context.Context, review []byte) ([]byte, error) {
	done, err := c.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	pause := c.firstWait
	for n := 1; ; n++ {
		answer, again, err := c.post(ctx, review)
		if err = safetext.Error(err); err == nil || again < 0 || n == tries {
			return answer, err
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

// turn waits for a turn, which done ends.
func (c *Client) turn(ctx context.Context) (done func(), err error) {
	select {
	case c.waiting <- struct{}{}:
	default:
		return nil, errors.New("too many reviews wait for it")
	}
	select {
	case c.turns <- struct{}{}:
		return func() { <-c.turns; <-c.waiting }, nil
	case <-ctx.Done():
		<-c.waiting
		return nil, ctx.Err()
	}
}

// never is the wait after the last try.
const never = -1

// post asks once. After an error, again is how long the next try waits at least; never: there is none.
func (c *Client) post(ctx context.Context, review []byte) (_ []byte, again time.Duration, _ error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(review))
	if err != nil {
		return nil, never, safetext.URLError(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	answer, err := c.client.Do(r)
	if err != nil {
		if ctx.Err() == nil && (utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err)) {
			return nil, 0, err
		}
		return nil, never, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if code := answer.StatusCode; code != http.StatusOK && code != http.StatusCreated {
		wait, asked := retryAfter(answer.Header)
		failed := code >= 500 && code != http.StatusServiceUnavailable
		if !asked && !failed && code != http.StatusTooManyRequests {
			wait = never
		}
		return nil, wait, fmt.Errorf("it answered %s", safetext.Text(answer.Status))
	}
	switch {
	case err != nil:
		return nil, never, err
	case len(text) > maxAnswer:
		return nil, never, fmt.Errorf("its answer has more than %d bytes", maxAnswer)
	}
	return text, never, nil
}

// retryAfter returns the wait that an answer asks for; asked is false if it asks for none.
func retryAfter(h http.Header) (wait time.Duration, asked bool) {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return 0, false
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter), true
}
