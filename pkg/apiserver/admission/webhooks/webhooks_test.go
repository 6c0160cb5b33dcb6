package webhooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/admission/webhooks"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/follow"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/webhook"
	"bonsai/pkg/apiserver/webhook/webhooktest"
)

// everyone may do everything.
type everyone struct{}

func (everyone) Authorize(context.Context, authz.Attributes) (authz.Decision, string, error) {
	return authz.Allow, "", nil
}

// house is what the plug-ins stand on.
type house struct {
	t     testing.TB
	chain *admission.Chain
	*catalog.Catalog
}

// newHouse has the plug-ins, informed, with the webhooks of configurations.
func newHouse(t testing.TB, client webhooks.Caller, configurations ...runtime.Object) *house {
	t.Helper()
	facts := &storage.FactsTable{}
	backend := memory.New(facts)
	served, err := catalog.New(t.Context(), catalog.Config{Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	all := slices.DeleteFunc(rows.All(), func(r resources.Row) bool {
		return !slices.Contains(
			[]string{"pods", "namespaces", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
			r.Resource)
	})
	if err := served.Add(assembletest.Entries(t, backend, all)...); err != nil {
		t.Fatal(err)
	}
	objects := func(resource string) follow.Resource {
		row := served.Snapshot().Resource(admissionregistrationv1.Resource(resource)).Row
		codec := registry.NewCodec(row)
		return follow.Resource{Source: backend, Prefix: registry.Prefix(row),
			Decode: func(b []byte) (runtime.Object, error) {
				return codec.Decode(b, 0)
			}}
	}
	plugins := webhooks.New(webhooks.Config{
		Mutating: objects("mutatingwebhookconfigurations"), Validating: objects("validatingwebhookconfigurations"),
		Client: client, Log: slog.New(slog.DiscardHandler),
		Matcher: match.New(match.Config{Catalog: served, Namespaces: served.Late(corev1.Resource("namespaces")),
			Authorizer: everyone{}, Log: slog.New(slog.DiscardHandler)}),
	})
	h := &house{t: t, chain: admission.NewChain(plugins.Mutating(), plugins.Validating()), Catalog: served}
	for _, c := range configurations {
		h.put(c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range plugins.Runs() {
		running.Go(func() { run(ctx) }) //nolint:errcheck // it ends with ctx
	}
	t.Cleanup(func() { cancel(); running.Wait() })
	return h
}

// put stores a configuration.
func (h *house) put(obj runtime.Object) {
	h.t.Helper()
	resource := "mutatingwebhookconfigurations"
	if _, ok := obj.(*admissionregistrationv1.ValidatingWebhookConfiguration); ok {
		resource = "validatingwebhookconfigurations"
	}
	if _, err := h.Store(admissionregistrationv1.Resource(resource)).Create(context.Background(), "", obj,
		&metav1.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// create asks the chain about a new pod and returns what it left of it.
func (h *house) create(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	a := attributes(pod)
	if err := h.chain.Admit(ctx, a); err != nil {
		return nil, err
	}
	return a.Object.(*corev1.Pod), h.chain.Validate(ctx, a)
}

func attributes(pod *corev1.Pod) *admission.Attributes {
	return &admission.Attributes{Operation: admission.Create, Kind: corev1.SchemeGroupVersion.WithKind("Pod"),
		Resource:  corev1.SchemeGroupVersion.WithResource("pods"),
		Namespace: "ns", Name: pod.Name, Object: pod, Options: &metav1.CreateOptions{}, User: &request.User{Name: "me"},
		Warn: func(string) {}}
}

func rule(resource string) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{"*"},
		Rule: admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"},
			Resources: []string{resource}}}}
}

func mutating(name string, s *webhooktest.Server, resource string,
	hooks int) *admissionregistrationv1.MutatingWebhookConfiguration {
	c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := range hooks {
		c.Webhooks = append(c.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name:         fmt.Sprintf("h%d.x.io", i),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &s.URL, CABundle: s.CABundle},
			Rules:        rule(resource),
			SideEffects:  ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		})
	}
	return c
}

func validating(name string, s *webhooktest.Server, resource string,
	hooks int) *admissionregistrationv1.ValidatingWebhookConfiguration {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := range hooks {
		c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name:         fmt.Sprintf("h%d.x.io", i),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &s.URL, CABundle: s.CABundle},
			Rules:        rule(resource),
			SideEffects:  ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		})
	}
	return c
}

// answering answers each review with what say makes of its request.
func answering(say func(*admissionv1.AdmissionRequest) admissionv1.AdmissionResponse) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := say(review.Request)
		out.UID = review.Request.UID
		review.Request, review.Response = nil, &out
		json.NewEncoder(w).Encode(&review) //nolint:errcheck // the server sees it
	})
}

// label is the patch that labels a pod.
func label(key string) admissionv1.AdmissionResponse {
	return admissionv1.AdmissionResponse{Allowed: true, PatchType: ptr.To(admissionv1.PatchTypeJSONPatch),
		Patch: []byte(`[{"op":"add","path":"/metadata/labels","value":{"` + key + `":"x"}}]`)}
}

// Validating webhooks are called at once, and mutating ones in the order of their configurations' names.
func TestOrder(t *testing.T) {
	t.Parallel()
	const hooks = 5
	var together sync.WaitGroup
	together.Add(hooks)
	v := webhooktest.NewServer(t, answering(func(*admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
		together.Done()
		together.Wait() // all of them are here
		return admissionv1.AdmissionResponse{Allowed: true}
	}))
	var mu sync.Mutex
	var order []string
	seen := func(name string) *webhooktest.Server {
		return webhooktest.NewServer(t, answering(func(*admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			return label(name)
		}))
	}
	client := webhook.New(webhook.Config{})
	h := newHouse(t, client, validating("v", v, "pods", hooks), mutating("b", seen("b"), "pods", 1),
		mutating("c", seen("c"), "pods", 1), mutating("a", seen("a"), "pods", 1))
	pod, err := h.create(t.Context(), "p")
	if err != nil || pod.Labels["c"] != "x" || strings.Join(order, "") != "abc" {
		t.Errorf("%v, labels %v, order %v", err, pod, order)
	}
}

// A webhook that answers with more than it may, or never, does not hold the request.
func TestBounds(t *testing.T) {
	t.Parallel()
	huge := webhooktest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // read to its end
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}))
	client := webhook.New(webhook.Config{})
	_, err := newHouse(t, client, mutating("m", huge, "pods", 1)).create(t.Context(), "p")
	if err == nil || !strings.Contains(err.Error(),
		`failed calling webhook "h0.x.io": failed to call webhook: the response is longer than 6291456 bytes`) {
		t.Errorf("a huge answer: %v", err)
	}
	silent := webhooktest.NewServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // then the server sees that the client goes
		<-r.Context().Done()
	}))
	c := validating("v", silent, "pods", 3)
	for i := range c.Webhooks {
		c.Webhooks[i].TimeoutSeconds = ptr.To(int32(1))
	}
	begun := time.Now()
	_, err = newHouse(t, client, c).create(t.Context(), "p")
	if took := time.Since(begun); !apierrors.IsInternalError(err) ||
		!strings.Contains(err.Error(), "context deadline exceeded") || took > 20*time.Second {
		t.Errorf("silent webhooks: %v after %s", err, took)
	}
}

// Configurations come and go while requests are made: each request is admitted, or meets the webhooks of one moment,
// and nothing stays behind.
func TestChangesUnderLoad(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("load", func(t *testing.T) {
		var called atomic.Int64
		s := webhooktest.NewServer(t, answering(func(*admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
			called.Add(1)
			return label("a")
		}))
		v := webhooktest.NewServer(t, answering(func(*admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
			return admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{"w"}}
		}))
		client := webhook.New(webhook.Config{})
		h := newHouse(t, client)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var clients, writer sync.WaitGroup
		writer.Go(func() {
			stores := []registry.Store{h.Store(admissionregistrationv1.Resource("mutatingwebhookconfigurations")),
				h.Store(admissionregistrationv1.Resource("validatingwebhookconfigurations"))}
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("c%d", i%3)
				if i%2 == 0 {
					h.put(mutating(name, s, "pods", 2))
					h.put(validating(name, v, "pods", 2))
					continue
				}
				for _, store := range stores {
					if _, _, err := store.Delete(context.Background(), "", fmt.Sprintf("c%d", (i-1)%3),
						&metav1.DeleteOptions{}); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
		for range 4 {
			clients.Go(func() {
				for n := 0; n < 100 || called.Load() < 100; n++ {
					if _, err := h.create(context.Background(), fmt.Sprintf("p%d", n)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		clients.Wait()
		cancel()
		writer.Wait()
		if err := client.Run(ctx); err != nil {
			t.Error(err)
		}
	})
}

// nobody must not be called.
type nobody struct{ t testing.TB }

func (n nobody) Call(context.Context, *webhook.Hook, []byte, time.Duration, int64) ([]byte, error) {
	n.t.Error("a webhook is called")
	return nil, nil
}

// BenchmarkNobody is a request that none of 100 webhooks of each kind is about.
func BenchmarkNobody(b *testing.B) {
	s := webhooktest.NewServer(b, http.NotFoundHandler())
	h := newHouse(b, nobody{b}, mutating("m", s, "services", 100), validating("v", s, "services", 100))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}}
	a := attributes(pod)
	b.ReportAllocs()
	for b.Loop() {
		if err := h.chain.Admit(b.Context(), a); err != nil {
			b.Fatal(err)
		}
		if err := h.chain.Validate(b.Context(), a); err != nil {
			b.Fatal(err)
		}
	}
}

// echo answers without a network.
type echo struct{}

func (echo) Call(_ context.Context, _ *webhook.Hook, body []byte, _ time.Duration, _ int64) ([]byte, error) {
	at := strings.Index(string(body), `"uid":"`) + len(`"uid":"`)
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true,"patchType":"JSONPatch","patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscyIsInZhbHVlIjp7ImEiOiJ4In19XQ=="}}`, body[at:at+36]), nil
}

// BenchmarkMutated is a pod that one webhook labels: what that costs the server without what the network costs.
func BenchmarkMutated(b *testing.B) {
	s := webhooktest.NewServer(b, http.NotFoundHandler())
	h := newHouse(b, echo{}, mutating("m", s, "pods", 1))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.create(b.Context(), "p"); err != nil {
			b.Fatal(err)
		}
	}
}
