// Package podcertificates gets the keys and certificates of podCertificate volumes (KEP-4317). For each such source of
// a pod it makes a key, asks the source's signer by a PodCertificateRequest, waits for the answer, and asks again, with
// a new key, when the certificate is to be replaced.
//
// Keys exist only in the kubelet's memory and in the volumes' tmpfs. After a restart the kubelet asks for all
// certificates again; until then the volumes keep what they have.
package podcertificates

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/kubelet/notify"
)

const (
	// patience is how long Get waits for a signer. A signer that answers in time spares the pod an event and a retry.
	patience = 5 * time.Second
	// spread is the most that a replacement is put off, by chance, so that the volumes of many pods that started
	// together do not ask together.
	spread = 5 * time.Minute
	// pause is the time between the attempts to replace a certificate. A pod that has none waits for it, and the API
	// server may only have been away for a moment: there the first pause is firstPause, and each one twice the last.
	pause, firstPause = time.Minute, time.Second
)

// Client asks the API server.
type Client interface {
	ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)
	CreatePodCertificateRequest(ctx context.Context,
		r *certificatesv1.PodCertificateRequest) (*certificatesv1.PodCertificateRequest, error)
	// PodCertificateRequest lists and watches one request, of a pod on this node: a kubelet may see no other.
	PodCertificateRequest(namespace, name, node string) cache.ListerWatcher
}

// Config is what a Manager needs. All is required.
type Config struct {
	Client Client
	// Node returns the name and the UID of the node; the UID is empty until the node is registered.
	Node func() (types.NodeName, types.UID)
	Now  func() time.Time
	// Random returns a number in [0, 1).
	Random func() float64
	// Event tells the users of a pod that a signer refused.
	Event func(pod *corev1.Pod, kind, reason, message string)
	Log   *slog.Logger
}

// Source names a source of a volume of a pod.
type Source struct {
	Pod    types.UID
	Volume string
	Index  int // of the volume's sources
}

// Manager holds the credentials of all pods. Its methods are safe for concurrent use.
//
// It has at most one unanswered request for each source.
type Manager struct {
	cfg  Config
	wake notify.Signal
	keys chan struct{} // has an entry for each RSA key that is being made, maxKeys at most

	mu      sync.Mutex
	sources map[Source]*state
	asked   []*request // not yet begun by Run
}

// state is what is known about a source. Manager.mu guards it.
type state struct {
	issued  *issued  // nil: nothing was issued yet
	pending *request // nil: nothing is asked for
	// failed is what became of the last request, nil if it was issued. final: the signer's refusal, which another
	// request would not change (KEP-4317).
	failed error
	final  bool
	// again is when the next request may follow a failed one. wait is the last pause, 0 without a failure.
	again time.Time
	wait  time.Duration
}

// issued is a key and its certificate, as files hold them, with wall-clock times alone, as its readers compare them.
type issued struct {
	key, chain    []byte
	replace, ends time.Time
}

// New checks the configuration and returns a Manager that asks for nothing before Run.
func New(cfg Config) (*Manager, error) {
	if cfg.Client == nil || cfg.Node == nil || cfg.Now == nil || cfg.Random == nil || cfg.Event == nil ||
		cfg.Log == nil {
		return nil, errors.New("pod certificates: Client, Node, Now, Random, Event and Log are required")
	}
	return &Manager{cfg: cfg, wake: notify.New(), keys: make(chan struct{}, maxKeys),
		sources: map[Source]*state{}}, nil
}

// Run asks the signers until ctx is done, and returns when all requests have ended. changed is called with a pod for
// which an answer came. It must not block.
func (m *Manager) Run(ctx context.Context, changed func(pods []types.UID)) error {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		m.mu.Lock()
		begin := m.asked
		m.asked = nil
		m.mu.Unlock()
		for _, r := range begin {
			running.Go(func() {
				m.ask(ctx, r)
				changed([]types.UID{r.source.Pod})
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.wake:
		}
	}
}

// Get returns the credential of a source of a pod's volume: a key (one PEM block, PKCS#8), and PEM blocks with the
// certificate of the key, then those that it builds on. The first call asks the signer, and waits a little for the
// answer; an error says what there is to wait for, or that the signer refused. With renew, a credential that is due is
// asked for again; the one that is there is good until it ends.
func (m *Manager) Get(ctx context.Context, pod *corev1.Pod, volume string, index int,
	p *corev1.PodCertificateProjection, renew bool) (key, chain []byte, err error) {
	m.mu.Lock()
	r, held, err := m.look(Source{pod.UID, volume, index}, pod, p, renew)
	m.mu.Unlock()
	switch {
	case err != nil:
		return nil, nil, err
	case held != nil:
		return held.key, held.chain, nil
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-r.done:
	case <-timeout.C:
		return nil, nil, errors.New("credential bundle is not issued yet")
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	return r.got.key, r.got.chain, nil
}

// look returns a credential that is good enough, an error that stays, or the request to wait for. m.mu is held.
func (m *Manager) look(source Source, pod *corev1.Pod, p *corev1.PodCertificateProjection,
	renew bool) (*request, *issued, error) {
	s, now := m.sources[source], m.cfg.Now()
	if s == nil {
		s = &state{}
		m.sources[source] = s
	}
	good := s.issued != nil && now.Before(s.issued.ends)
	due := !good || renew && !now.Before(s.issued.replace)
	switch {
	case s.pending != nil || !due:
	case s.failed != nil && (now.Before(s.again) || s.final && s.issued == nil):
		if !good {
			return nil, nil, s.failed
		}
	default:
		s.pending = newRequest(source, pod, p)
		m.asked = append(m.asked, s.pending)
		m.wake.Notify()
	}
	if good {
		return nil, s.issued, nil
	}
	return s.pending, nil, nil
}

// Forget drops the credentials of a pod, and no longer waits for others.
func (m *Manager) Forget(pod types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for source, s := range m.sources {
		if source.Pod != pod {
			continue
		}
		if s.pending != nil {
			s.pending.abandon()
		}
		delete(m.sources, source)
	}
}

// finish records what became of a request, unless its pod is gone.
func (m *Manager) finish(r *request, got *issued, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer close(r.done)
	s := m.sources[r.source]
	if s == nil || s.pending != r {
		r.err = errors.New("the pod is gone")
		return
	}
	r.got, r.err = got, err
	s.pending, s.failed = nil, err
	if err == nil {
		s.issued, s.wait = got, 0
		return
	}
	s.wait = pauseAfter(s.wait, s.issued != nil)
	var refused refusal
	if s.final = errors.As(err, &refused); s.final {
		m.cfg.Event(r.pod, corev1.EventTypeWarning, refused.verdict, refused.event(r.pod.Namespace))
	}
	s.again = m.cfg.Now().Add(s.wait)
	m.cfg.Log.Warn("no certificate for a pod", "pod", r.pod.Namespace+"/"+r.pod.Name, "volume", r.source.Volume,
		"err", err)
}

// pauseAfter is the pause that follows last, 0 for the first one. issued: there is a certificate.
func pauseAfter(last time.Duration, issued bool) time.Duration {
	if issued {
		return pause
	}
	return min(max(2*last, firstPause), pause)
}
