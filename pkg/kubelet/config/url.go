package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/docbounds"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/safetext"
)

// URL reads static pods from a URL every Period: one Pod or a PodList, in YAML or JSON. The pods stay as they are while
// the answer is no good, or holds one pod that is none: to leave out one would end it.
type URL struct {
	// URL is asked with Header. Neither's secrets get into logs.
	URL    *url.URL
	Header http.Header
	Node   string
	// Period is the time between requests, default 20 s.
	Period   time.Duration
	Defaults func(*corev1.Pod) error
	Log      *slog.Logger

	manifests
	// failed is the fault of the last answer, "" without one. It is logged once.
	failed string
}

// Bounds of an answer: how long it may take, in bytes as upstream, and once aliases are written out.
const (
	urlPatience = 10 * time.Second
	maxAnswer   = 10 << 20
)

// sourceURL is the annotation runtime.AnnotationConfigSource of the pods.
const sourceURL = "http"

var answerBounds = docbounds.Bounds{Bytes: 2 * maxAnswer, Values: 1_000_000, Depth: 300}

// Run asks until ctx ends.
func (u *URL) Run(ctx context.Context, h Handler) error {
	if u.Period <= 0 {
		u.Period = 20 * time.Second
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxResponseHeaderBytes: 64 << 10}
	client := &http.Client{Transport: transport, Timeout: urlPatience, CheckRedirect: u.redirect}
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(u.Period)
	defer ticker.Stop()
	for {
		u.read(ctx, client, h)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// redirect keeps the headers from other servers: net/http would send all but a few along.
func (u *URL) redirect(to *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	if len(u.Header) > 0 && (to.URL.Host != u.URL.Host || to.URL.Scheme != u.URL.Scheme) {
		return errors.New("the answer leads to another server, which must not get the headers of staticPodURLHeader")
	}
	return nil
}

func (u *URL) read(ctx context.Context, client *http.Client, h Handler) {
	defer u.tried.Store(true)
	now, err := u.load(ctx, client)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil && err.Error() == u.failed: // was logged
		return
	case err != nil:
		u.failed = err.Error()
		u.Log.Error("static pods not read, keeping those known", "url", u.URL.Redacted(), "err", err)
		return
	case u.failed != "":
		u.failed = ""
		u.Log.Info("static pods are read again", "url", u.URL.Redacted())
	}
	u.pass(now, h)
}

// load asks for the pods. Errors of net/http name the URL without its password.
func (u *URL) load(ctx context.Context, client *http.Client) (map[types.UID]*corev1.Pod, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, u.URL.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", u.URL.Redacted(), safetext.URLError(err))
	}
	q.Header = u.Header.Clone()
	answer, err := client.Do(q)
	if err != nil {
		return nil, safetext.Error(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", u.URL.Redacted(), safetext.Text(answer.Status))
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer of %s: %w", u.URL.Redacted(), err)
	case len(data) > maxAnswer:
		return nil, fmt.Errorf("the answer of %s is larger than %d bytes", u.URL.Redacted(), maxAnswer)
	case len(data) == 0:
		return nil, fmt.Errorf("zero-length data received from %s", u.URL.Redacted())
	}
	pods, err := u.parse(data)
	return pods, safetext.Error(err) // a decoder repeats the answer's words
}

// parse makes static pods of an answer: of a list each, whatever its place in the list.
func (u *URL) parse(data []byte) (map[types.UID]*corev1.Pod, error) {
	name := u.URL.Redacted()
	if err := docbounds.YAML(data, answerBounds); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	list := &corev1.PodList{}
	if err := yaml.Unmarshal(data, &list.TypeMeta); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	if list.Kind == "PodList" && list.APIVersion == "v1" {
		if err := yaml.UnmarshalStrict(data, list); err != nil {
			return nil, fmt.Errorf("manifest %s: %w", name, err)
		}
	} else {
		pod, err := decode(data, name)
		if err != nil {
			return nil, err
		}
		list.Items = []corev1.Pod{*pod}
	}
	if n := len(list.Items); n > maxManifests {
		return nil, fmt.Errorf("manifest %s: it has %d pods, more than %d", name, n, maxManifests)
	}
	pods, names := map[types.UID]*corev1.Pod{}, map[string]bool{}
	for i := range list.Items {
		pod, err := u.static(&list.Items[i])
		if err != nil {
			return nil, err
		}
		if full := runtime.FullName(pod); names[full] || pods[pod.UID] != nil {
			return nil, fmt.Errorf("manifest %s: two pods are named %q, or have its metadata.uid", name, full)
		}
		pods[pod.UID], names[runtime.FullName(pod)] = pod, true
	}
	return pods, nil
}

// static makes a static pod of one of the answer's. Its hash is that of its fields alone: it lives on when other pods
// of a list change, or the password in the URL.
func (u *URL) static(pod *corev1.Pod) (*corev1.Pod, error) {
	name, from := u.URL.Redacted(), *u.URL
	from.User = nil
	if k, v := pod.Kind, pod.APIVersion; k != "" && k != "Pod" || v != "" && v != "v1" {
		return nil, fmt.Errorf("manifest %s: it has %s %s, not v1 Pod", name, v, k)
	}
	pod.Kind, pod.APIVersion = "Pod", "v1"
	text, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	s := source{name: name, kind: sourceURL, node: u.Node,
		hashed: append([]byte("url:"+from.String()+"\n"), text...)}
	return s.static(pod, u.Defaults)
}
