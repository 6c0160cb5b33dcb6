package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/apiserver/audit"
	"bonsai/pkg/safetext"
)

// WebhookOptions are those of the sink that sends events to a server, in the words of its flags.
type WebhookOptions struct {
	Options
	// ConfigFile is a kubeconfig that says where it is. "": there is no such sink.
	ConfigFile string
	// InitialBackoff is how long the first repetition waits; each further one half as long again.
	InitialBackoff time.Duration
	// Dial opens the connections through a proxy; nil: they are direct.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Validate tells what is wrong with the options.
func (o *WebhookOptions) Validate() error {
	if o.ConfigFile == "" {
		return nil
	}
	return errors.Join(o.Options.Validate("webhook")...)
}

// How often a batch is sent that the server does not take, how much longer each wait is, and how long one attempt may
// take.
const (
	attempts       = 5
	backoffFactor  = 1.5
	attemptTimeout = 30 * time.Second
	maxWebhookSays = 64 << 10
)

// Webhook makes the sink. It calls lost for events that could not be kept.
func Webhook(ctx context.Context, o *WebhookOptions, lost Lost) (audit.Sink, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", o.ConfigFile)
	if err != nil {
		return nil, fmt.Errorf("initializing audit webhook: %w", safetext.URLError(err))
	}
	cfg.Timeout, cfg.Dial = attemptTimeout, o.Dial
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("initializing audit webhook: %w", err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return o.put(ctx, "webhook", &webhook{url: cfg.Host, client: client, backoff: o.InitialBackoff}, lost), nil
}

// webhook sends events as an EventList.
type webhook struct {
	url     string
	client  *http.Client
	backoff time.Duration
}

func (w *webhook) write(ctx context.Context, events []*auditv1.Event) error {
	list := auditv1.EventList{
		TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: auditv1.SchemeGroupVersion.String()}}
	for _, e := range events {
		item := *e
		item.TypeMeta = metav1.TypeMeta{} // as upstream has it in a list
		list.Items = append(list.Items, item)
	}
	body, err := json.Marshal(&list)
	if err != nil {
		return fmt.Errorf("encode audit events: %w", err)
	}
	wait := w.backoff
	for n := 1; ; n++ {
		again, err := w.send(ctx, body)
		if err == nil || !again || n == attempts {
			return err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return errors.Join(err, ctx.Err())
		}
		wait = time.Duration(float64(wait) * backoffFactor)
	}
}

// send sends once. again tells that it makes sense to try again.
func (w *webhook) send(ctx context.Context, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("audit webhook: %w", safetext.URLError(err))
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	answer, err := w.client.Do(r)
	if err != nil {
		return ctx.Err() == nil, fmt.Errorf("audit webhook: %w", safetext.Error(err))
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, maxWebhookSays))
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return false, nil // what it says does not matter, nor whether it says it to the end
	case code == http.StatusTooManyRequests || code >= 500:
		return true, fmt.Errorf("audit webhook: the server answered %s", safetext.Text(answer.Status))
	default:
		return false, errors.Join(fmt.Errorf("audit webhook: the server answered %s", safetext.Text(answer.Status)),
			err)
	}
}
