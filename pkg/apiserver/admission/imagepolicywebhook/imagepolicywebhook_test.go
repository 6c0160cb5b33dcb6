package imagepolicywebhook

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/apiserver/admission"
)

// hooked returns a plug-in whose webhook is h, and a clock for it.
func hooked(t *testing.T, c Configuration, h http.HandlerFunc) (admission.Validator, *atomic.Int64) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	c.KubeConfigFile = filepath.Join(t.TempDir(), "hook")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{CurrentContext: "c",
		Contexts:  map[string]*clientcmdapi.Context{"c": {Cluster: "w", AuthInfo: "s"}},
		Clusters:  map[string]*clientcmdapi.Cluster{"w": {Server: s.URL + "/review", CertificateAuthorityData: ca}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"s": {Token: "server"}}}, c.KubeConfigFile); err != nil {
		t.Fatal(err)
	}
	hook, err := NewHook(&c)
	if err != nil {
		t.Fatal(err)
	}
	var clock atomic.Int64
	return New(hook, func() time.Time { return time.Unix(clock.Load(), 0) }).Validator, &clock
}

func pod(images ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	for _, i := range images {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Image: i})
	}
	return p
}

func create(p *corev1.Pod) *admission.Attributes {
	return &admission.Attributes{Operation: admission.Create, Resource: corev1.SchemeGroupVersion.WithResource("pods"),
		Namespace: "ns", Name: p.Name, Object: p}
}

// answers with a status.
func answers(allowed bool, reason string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review imagepolicyv1alpha1.ImageReview
		if r.Header.Get("Authorization") != "Bearer server" || json.NewDecoder(r.Body).Decode(&review) != nil {
			http.Error(w, "who asks?", http.StatusUnauthorized)
			return
		}
		review.Status = imagepolicyv1alpha1.ImageReviewStatus{Allowed: allowed, Reason: reason}
		_ = json.NewEncoder(w).Encode(&review)
	}
}

// TestBadWebhooks: whatever the webhook does, the pod is refused in bounded time, unless the configuration lets it in.
func TestBadWebhooks(t *testing.T) {
	t.Parallel()
	text := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	const review = `{"kind": "ImageReview", "apiVersion": "imagepolicy.k8s.io/v1alpha1", `
	const allowed = `"status": {"allowed": true}}`
	huge := strings.Repeat(" ", maxAnswer)
	for name, c := range map[string]struct {
		hook http.HandlerFunc
		want string
	}{
		"garbage":       {text(200, "\x00\xff{"), "is no ImageReview"},
		"nothing":       {text(200, ""), "is no ImageReview"},
		"another kind":  {text(200, `{"kind": "Pod", "apiVersion": "v1", `+allowed), `is of kind "Pod" of "v1"`},
		"no kind":       {text(200, `{`+allowed), `is of kind "" of ""`},
		"huge":          {text(200, huge+review+allowed), "longer than 1048576 bytes"},
		"an error":      {text(500, "broken"), "broken"},
		"a huge error":  {text(500, huge+huge), ""},
		"a redirection": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", 307) }, "307"},
		"hangs up":      {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, open := range []bool{false, true} {
				p, _ := hooked(t, Configuration{DefaultAllow: open}, c.hook)
				err := p.Validate(t.Context(), create(pod("i:1")))
				if open != (err == nil) {
					t.Errorf("default allow %v: %v", open, err)
				}
				if err != nil && (!strings.Contains(err.Error(), c.want) || len(err.Error()) > 5000) {
					t.Errorf("%.500s, want %s", err, c.want)
				}
			}
		})
	}
}

// TestSilentWebhook: a webhook that never answers holds a request no longer than the request itself lasts, and lets
// nothing in by that.
func TestSilentWebhook(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	p, _ := hooked(t, Configuration{DefaultAllow: true}, func(http.ResponseWriter, *http.Request) { <-end })
	t.Cleanup(func() { close(end) }) // before the webhook is closed, which waits for its handlers
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Validate(ctx, create(pod("i:1"))); !apierrors.IsForbidden(err) {
		t.Errorf("%v, want a refusal", err)
	}
}

// TestRetries: a webhook that answers later is asked again.
func TestRetries(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	p, _ := hooked(t, Configuration{RetryBackoff: time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < tries {
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		}
		answers(true, "")(w, r)
	})
	if err := p.Validate(t.Context(), create(pod("i:1"))); err != nil || asked.Load() != tries {
		t.Errorf("%v after %d tries", err, asked.Load())
	}
}

// TestRemembered: an answer holds for its time, for the same images only, and is never longer than the bound.
func TestRemembered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allowed bool
		reason  string
		ttl     int64
	}{
		"allowed": {true, "", 60}, "denied": {false, "no", 10}, "long": {false, strings.Repeat("a", maxRemembered), 0},
	} {
		var asked atomic.Int32
		p, clock := hooked(t, Configuration{AllowTTL: time.Minute, DenyTTL: 10 * time.Second},
			func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				answers(c.allowed, c.reason)(w, r)
			})
		ask := func(images ...string) int32 {
			before := asked.Load()
			if err := p.Validate(t.Context(), create(pod(images...))); (err == nil) != c.allowed {
				t.Errorf("%s: %v", name, err)
			}
			return asked.Load() - before
		}
		remembered := int32(1)
		if c.ttl > 0 {
			remembered = 0
		}
		if first, again, other := ask("i:1"), ask("i:1"), ask("i:1", "i:2"); first != 1 || again != remembered ||
			other != 1 {
			t.Errorf("%s: asked %d, %d, %d times", name, first, again, other)
		}
		clock.Add(c.ttl)
		if n := ask("i:1"); n != 1 {
			t.Errorf("%s: asked %d times when the answer has expired", name, n)
		}
	}
}

// TestAsked: what the webhook is asked about.
func TestAsked(t *testing.T) {
	t.Parallel()
	p, _ := hooked(t, Configuration{}, answers(false, "asked"))
	update := func(subresource string, old, now *corev1.Pod) *admission.Attributes {
		a := create(now)
		a.Operation, a.OldObject, a.Subresource = admission.Update, old, subresource
		return a
	}
	debugged := pod("i:1")
	debugged.Spec.EphemeralContainers = []corev1.EphemeralContainer{
		{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Image: "e:1"}}}
	for name, c := range map[string]struct {
		a     *admission.Attributes
		asked bool
	}{
		"created":                {create(pod("i:1")), true},
		"without containers":     {create(pod()), false},
		"another image":          {update("", pod("i:1"), pod("i:2")), true},
		"the same image":         {update("", pod("i:1"), pod("i:1")), false},
		"an ephemeral container": {update("ephemeralcontainers", pod("i:1"), debugged), true},
		"no new one":             {update("ephemeralcontainers", debugged, debugged), false},
		"status":                 {update("status", pod("i:1"), pod("i:2")), false},
		"resized":                {update("resize", pod("i:1"), pod("i:1")), false},
		"deleted":                {&admission.Attributes{Operation: admission.Delete}, false},
		"no pod": {
			&admission.Attributes{Operation: admission.Create, Object: &corev1.ConfigMap{}}, false},
	} {
		if err := p.Validate(t.Context(), c.a); apierrors.IsForbidden(err) != c.asked || !c.asked && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
