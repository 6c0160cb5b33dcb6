package podcertificates

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
)

// request is one that a signer has not answered.
type request struct {
	source Source
	pod    *corev1.Pod
	of     corev1.PodCertificateProjection
	// done is closed when there is an answer, or none will come. Until then only the Manager sets got and err; after
	// that they are read-only, and one of them is set.
	done    chan struct{}
	got     *issued
	err     error
	gone    chan struct{} // closed when the pod is gone
	abandon func()        // closes gone
}

func newRequest(source Source, pod *corev1.Pod, p *corev1.PodCertificateProjection) *request {
	r := &request{source: source, pod: pod, of: *p.DeepCopy(), done: make(chan struct{}), gone: make(chan struct{})}
	r.abandon = sync.OnceFunc(func() { close(r.gone) })
	return r
}

// refusal is a signer's no: its verdict is the condition, Denied or Failed. Another request would get the same.
type refusal struct{ name, verdict, reason, message string }

func (r refusal) Error() string {
	return fmt.Sprintf("PodCertificateRequest was permanently %s: reason=%q message=%q", strings.ToLower(r.verdict),
		r.reason, r.message)
}

// event tells the users of the pod.
func (r refusal) event(namespace string) string {
	what := "failed"
	if r.verdict == certificatesv1.PodCertificateRequestConditionTypeDenied {
		what = "was denied"
	}
	return fmt.Sprintf("PodCertificateRequest %s/%s %s, reason=%q, message=%q", namespace, r.name, what, r.reason,
		r.message)
}

// ask makes a key, sends the request for it and waits for the answer.
func (m *Manager) ask(ctx context.Context, r *request) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-r.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	got, err := m.answer(ctx, r)
	m.finish(r, got, err)
}

func (m *Manager) answer(ctx context.Context, r *request) (*issued, error) {
	node, nodeUID := m.cfg.Node()
	if nodeUID == "" {
		return nil, errors.New("the node is not registered yet")
	}
	account, err := m.cfg.Client.ServiceAccount(ctx, r.pod.Namespace, r.pod.Spec.ServiceAccountName)
	if err != nil {
		return nil, fmt.Errorf("read the pod's service account: %w", err)
	}
	key, err := m.newKey(ctx, r.of.KeyType)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	private, err := privatePEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	csr, err := stub(key)
	if err != nil {
		return nil, fmt.Errorf("sign with the key: %w", err)
	}
	sent, err := m.cfg.Client.CreatePodCertificateRequest(ctx, &certificatesv1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.pod.Namespace, GenerateName: "req-",
			// The request goes with its pod.
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: r.pod.Name,
				UID: r.source.Pod}}},
		Spec: certificatesv1.PodCertificateRequestSpec{SignerName: r.of.SignerName, PodName: r.pod.Name,
			PodUID: r.source.Pod, ServiceAccountName: r.pod.Spec.ServiceAccountName, ServiceAccountUID: account.UID,
			NodeName: node, NodeUID: nodeUID, MaxExpirationSeconds: r.of.MaxExpirationSeconds, StubPKCS10Request: csr,
			UnverifiedUserAnnotations: r.of.UserAnnotations}})
	if err != nil {
		return nil, fmt.Errorf("ask signer %q for a certificate: %w", r.of.SignerName, err)
	}
	answered, err := m.await(ctx, sent, node)
	if err != nil {
		return nil, err
	}
	return m.read(answered, private)
}

// await returns the request when its signer has answered it.
func (m *Manager) await(ctx context.Context, sent *certificatesv1.PodCertificateRequest,
	node types.NodeName) (*certificatesv1.PodCertificateRequest, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &waiter{uid: sent.UID, stop: cancel}
	apiclient.Follow(ctx, m.cfg.Client.PodCertificateRequest(sent.Namespace, sent.Name, string(node)),
		"kubelet-podcertificaterequest", w, m.cfg.Log)
	switch {
	case w.answered != nil:
		return w.answered, nil
	case w.deleted:
		return nil, fmt.Errorf("PodCertificateRequest %s was deleted before signer %q answered it", sent.Name,
			sent.Spec.SignerName)
	}
	return nil, ctx.Err()
}

// waiter stops to follow a request when it is answered or gone. One goroutine calls its methods.
type waiter struct {
	uid      types.UID
	stop     func()
	answered *certificatesv1.PodCertificateRequest
	deleted  bool
}

var _ apiclient.Sink[*certificatesv1.PodCertificateRequest] = (*waiter)(nil)

// Set looks for an answer.
func (w *waiter) Set(r *certificatesv1.PodCertificateRequest) {
	if r.UID == w.uid && verdict(r) != nil {
		w.answered = r
		w.stop()
	}
}

// Delete records that the request is gone.
func (w *waiter) Delete(r *certificatesv1.PodCertificateRequest) {
	if r.UID == w.uid && w.answered == nil {
		w.deleted = true
		w.stop()
	}
}

// Replace looks for an answer among all there is: a request that is not there is gone.
func (w *waiter) Replace(all []*certificatesv1.PodCertificateRequest) {
	for _, r := range all {
		if r.UID == w.uid {
			w.Set(r)
			return
		}
	}
	w.deleted = w.answered == nil
	w.stop()
}

// verdict returns the condition that ends a request, nil if its signer has not decided.
func verdict(r *certificatesv1.PodCertificateRequest) *metav1.Condition {
	for i, c := range r.Status.Conditions {
		switch c.Type {
		case certificatesv1.PodCertificateRequestConditionTypeIssued,
			certificatesv1.PodCertificateRequestConditionTypeDenied,
			certificatesv1.PodCertificateRequestConditionTypeFailed:
			if c.Status == metav1.ConditionTrue {
				return &r.Status.Conditions[i]
			}
		}
	}
	return nil
}

// read returns what a signer has issued for a key, or its refusal.
func (m *Manager) read(r *certificatesv1.PodCertificateRequest, private []byte) (*issued, error) {
	if c := verdict(r); c.Type != certificatesv1.PodCertificateRequestConditionTypeIssued {
		return nil, refusal{r.Name, c.Type, c.Reason, c.Message}
	}
	s := &r.Status
	if s.NotAfter == nil || s.BeginRefreshAt == nil {
		return nil, fmt.Errorf("PodCertificateRequest %s is issued without notAfter and beginRefreshAt", r.Name)
	}
	chain, err := cleanChain(s.CertificateChain)
	if err != nil {
		return nil, fmt.Errorf("PodCertificateRequest %s: %w", r.Name, err)
	}
	later := time.Duration(m.cfg.Random() * float64(spread))
	return &issued{key: private, chain: chain, replace: s.BeginRefreshAt.Add(later),
		ends: s.NotAfter.Time}, nil
}
