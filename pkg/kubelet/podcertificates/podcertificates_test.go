package podcertificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// server keeps requests, and answers each as its signer does.
type server struct {
	mu       sync.Mutex
	requests []*certificatesv1.PodCertificateRequest
	watches  []*watch.FakeWatcher
	// signer answers a request by its number, from 1 on; nil: later.
	signer func(n int, r *certificatesv1.PodCertificateRequest) *certificatesv1.PodCertificateRequestStatus
	events []string
	// away is how many requests the server does not answer yet.
	away int
}

func (s *server) event(_ *corev1.Pod, kind, reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, kind+" "+reason+" "+message)
}

func (s *server) ServiceAccount(_ context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "account-uid"}
	return &corev1.ServiceAccount{ObjectMeta: meta}, nil
}

func (s *server) CreatePodCertificateRequest(_ context.Context,
	r *certificatesv1.PodCertificateRequest) (*certificatesv1.PodCertificateRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away > 0 {
		s.away--
		return nil, errors.New("connection refused")
	}
	if strings.Contains(r.Spec.SignerName, "nobody") {
		return nil, apierrors.NewForbidden(certificatesv1.Resource("podcertificaterequests"), "", errors.New("no"))
	}
	r = r.DeepCopy()
	n := len(s.requests) + 1
	r.Name = r.GenerateName + string(rune('a'+n))
	r.UID = types.UID(r.Name)
	r.ResourceVersion = "1"
	s.requests = append(s.requests, r)
	return r, nil
}

// decide lets the signer answer the newest request.
func (s *server) decide() {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.requests)
	r := s.requests[n-1]
	if status := s.signer(n, r); status != nil {
		r = r.DeepCopy()
		r.Status = *status
		s.requests[n-1] = r
	}
	for _, w := range s.watches {
		if !w.IsStopped() {
			w.Modify(r)
		}
	}
}

func (s *server) PodCertificateRequest(namespace, name, node string) cache.ListerWatcher {
	return noStream{&cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			list := &certificatesv1.PodCertificateRequestList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			for _, r := range s.requests {
				if r.Namespace == namespace && r.Name == name && string(r.Spec.NodeName) == node {
					list.Items = append(list.Items, *r)
				}
			}
			return list, nil
		},
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 10})
			s.watches = append(s.watches, w)
			return w, nil
		},
	}}
}

// noStream is a server that does not stream lists.
type noStream struct{ *cache.ListWatch }

func (noStream) IsWatchListSemanticsUnSupported() bool { return true }

func condition(kind, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "because"}}
}

var chain = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("leaf")}))

// hours issues a certificate for two hours, which is to be replaced after one.
func hours(_ int, _ *certificatesv1.PodCertificateRequest) *certificatesv1.PodCertificateRequestStatus {
	now := time.Now()
	return &certificatesv1.PodCertificateRequestStatus{Conditions: condition("Issued", "Signed"),
		CertificateChain: "a comment\n" + chain, NotBefore: &metav1.Time{Time: now},
		BeginRefreshAt: &metav1.Time{Time: now.Add(time.Hour)}, NotAfter: &metav1.Time{Time: now.Add(2 * time.Hour)}}
}

func manager(t *testing.T, s *server) (*Manager, *corev1.Pod) {
	t.Helper()
	m, err := New(Config{Client: s, Now: time.Now, Random: func() float64 { return 0.5 },
		Log:   slog.New(slog.DiscardHandler),
		Event: s.event,
		Node:  func() (types.NodeName, types.UID) { return "n1", "node-uid" }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- m.Run(ctx, func([]types.UID) {}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return m, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "pod-uid"},
		Spec: corev1.PodSpec{ServiceAccountName: "sa"}}
}

// TestLife: a certificate is asked for once, kept, replaced when it is due, kept while the signer does not answer, and
// no good any more when it has ended.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{signer: hours}
		m, pod := manager(t, s)
		p := &corev1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ECDSAP256",
			UserAnnotations: map[string]string{"example.com/k": "v"}}
		get := func() (issued, error) {
			key, chain, err := m.Get(t.Context(), pod, "v", 1, p, true)
			return issued{key: key, chain: chain}, err
		}

		if _, err := get(); err == nil || !strings.Contains(err.Error(), "credential bundle is not issued yet") {
			t.Fatalf("an unanswered request: %v", err)
		}
		s.decide()
		synctest.Wait()
		first, err := get()
		if err != nil || string(first.chain) != chain {
			t.Fatalf("%q, %v", first.chain, err)
		}
		spec := s.requests[0].Spec
		csr, err := x509.ParseCertificateRequest(spec.StubPKCS10Request)
		if err != nil || csr.CheckSignature() != nil {
			t.Errorf("the request: %v", err)
		}
		spec.StubPKCS10Request = nil
		if spec.PodUID != "pod-uid" || spec.NodeUID != "node-uid" || spec.ServiceAccountUID != "account-uid" ||
			spec.ServiceAccountName != "sa" || spec.UnverifiedUserAnnotations["example.com/k"] != "v" {
			t.Errorf("%+v", spec)
		}
		if block, _ := pem.Decode(first.key); block == nil || block.Type != "PRIVATE KEY" {
			t.Errorf("the key is %q", first.key)
		}

		time.Sleep(time.Hour)
		if again, err := get(); err != nil || !bytes.Equal(again.key, first.key) || len(s.requests) != 1 {
			t.Errorf("asked %d times before it was due: %v", len(s.requests), err)
		}
		time.Sleep(spread / 2)
		if again, _, err := m.Get(t.Context(), pod, "v", 1, p, false); err != nil || !bytes.Equal(again, first.key) {
			t.Error(err)
		}
		for range 2 { // while it is being replaced, the old one is good
			if again, err := get(); err != nil || !bytes.Equal(again.key, first.key) {
				t.Error(err)
			}
		}
		synctest.Wait()
		if len(s.requests) != 2 {
			t.Fatalf("asked %d times when it was due", len(s.requests))
		}
		s.decide()
		synctest.Wait()
		if second, err := get(); err != nil || bytes.Equal(second.key, first.key) {
			t.Errorf("it was not replaced: %v", err)
		}

		s.signer = func(int, *certificatesv1.PodCertificateRequest) *certificatesv1.PodCertificateRequestStatus {
			return nil
		}
		time.Sleep(2*time.Hour + time.Second)
		if _, err := get(); err == nil {
			t.Error("a certificate that has ended is handed out")
		}
		m.Forget(pod.UID)
		synctest.Wait()
	})
}

// TestRefusals: what a signer refuses is not asked for again before the pod has a certificate; after that a refusal is
// no reason to take it away.
func TestRefusals(t *testing.T) {
	for _, verdict := range []string{"Denied", "Failed"} {
		t.Run(verdict, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refuse := func(int, *certificatesv1.PodCertificateRequest) *certificatesv1.PodCertificateRequestStatus {
					return &certificatesv1.PodCertificateRequestStatus{Conditions: condition(verdict, "Why")}
				}
				s := &server{signer: refuse}
				m, pod := manager(t, s)
				p := &corev1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ED25519"}
				get := func() error { _, _, err := m.Get(t.Context(), pod, "v", 0, p, true); return err }
				_ = get() // it is asked for
				s.decide()
				synctest.Wait()
				for range 2 {
					time.Sleep(time.Hour)
					if err := get(); err == nil || !strings.Contains(err.Error(), `was permanently `+
						strings.ToLower(verdict)+`: reason="Why" message="because"`) || len(s.requests) != 1 {
						t.Errorf("%v after %d requests", err, len(s.requests))
					}
				}

				what := map[string]string{"Denied": "was denied", "Failed": "failed"}[verdict]
				want := "Warning " + verdict + " PodCertificateRequest ns/" + s.requests[0].Name + " " + what +
					`, reason="Why", message="because"`
				if !slices.Equal(s.events, []string{want}) {
					t.Errorf("%q, want %q", s.events, want)
				}

				other := pod.DeepCopy()
				other.UID = "other"
				pod, s.signer = other, hours
				_ = get()
				s.decide()
				synctest.Wait()
				s.signer = refuse
				time.Sleep(time.Hour + spread)
				for want := 3; want < 5; want++ { // once in a while, as long as the first one is good
					if err := get(); err != nil {
						t.Error(err)
					}
					synctest.Wait()
					s.decide()
					synctest.Wait()
					if err := get(); err != nil || len(s.requests) != want {
						t.Errorf("%v after %d requests", err, len(s.requests))
					}
					time.Sleep(pause)
				}
				m.Forget(pod.UID)
			})
		})
	}
}

// TestRefusedReplacement: who waits for the replacement of a certificate that has ended gets the refusal, and not the
// certificate that has ended.
func TestRefusedReplacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{signer: hours}
		m, pod := manager(t, s)
		p := &corev1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ED25519"}
		get := func() (chain []byte, err error) {
			_, chain, err = m.Get(t.Context(), pod, "v", 0, p, true)
			return chain, err
		}
		answered := func() (chain []byte, err error) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				chain, err = get()
			}()
			synctest.Wait()
			s.decide()
			<-done
			return chain, err
		}
		if got, err := answered(); err != nil || string(got) != chain {
			t.Fatalf("%q, %v", got, err)
		}
		time.Sleep(2*time.Hour + time.Second)
		s.signer = func(int, *certificatesv1.PodCertificateRequest) *certificatesv1.PodCertificateRequestStatus {
			return &certificatesv1.PodCertificateRequestStatus{Conditions: condition("Denied", "Why")}
		}
		if got, err := answered(); err == nil || !strings.Contains(err.Error(), "permanently denied") {
			t.Errorf("%q, %v", got, err)
		}
		m.Forget(pod.UID)
	})
}

// TestForgottenWhileAsked: who waits for a certificate learns that the pod is gone.
func TestForgottenWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, pod := manager(t, &server{signer: hours})
		p := &corev1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ED25519"}
		failed := make(chan error, 1)
		go func() {
			_, _, err := m.Get(t.Context(), pod, "v", 0, p, true)
			failed <- err
		}()
		synctest.Wait()
		m.Forget(pod.UID)
		if err := <-failed; err == nil || err.Error() != "the pod is gone" {
			t.Error(err)
		}
	})
}

// TestFaults: what keeps a request from being answered is said, and asked for again later.
func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		m, pod := manager(t, s)
		for name, c := range map[string]struct{ signer, key, want string }{
			"forbidden": {"example.com/nobody", "ED25519", `ask signer "example.com/nobody" for a certificate`},
			"key type":  {"example.com/s", "DSA", `the key type "DSA" is not known`},
		} {
			p := &corev1.PodCertificateProjection{SignerName: c.signer, KeyType: c.key}
			_, _, err := m.Get(t.Context(), pod, name, 0, p, true)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		// Somebody deletes the request.
		p := &corev1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ECDSAP384"}
		_, _, _ = m.Get(t.Context(), pod, "v", 0, p, true)
		s.mu.Lock()
		gone := s.requests[0]
		s.requests = nil
		for _, w := range s.watches {
			if !w.IsStopped() {
				w.Delete(gone)
			}
		}
		s.mu.Unlock()
		synctest.Wait()
		_, _, err := m.Get(t.Context(), pod, "v", 0, p, true)
		if err == nil || !strings.Contains(err.Error(), "was deleted") {
			t.Error(err)
		}
		time.Sleep(pause)
		_, _, _ = m.Get(t.Context(), pod, "v", 0, p, true)
		synctest.Wait()
		s.mu.Lock()
		again := len(s.requests)
		s.mu.Unlock()
		if again != 1 {
			t.Errorf("it was asked for %d times after that", again)
		}
		m.Forget(pod.UID)
	})
}

// TestFirstSoonAgain: while a pod has no certificate, a request that failed is followed by another one within seconds.
// The pauses grow.
func TestFirstSoonAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{away: 9}
		m, pod := manager(t, s)
		p := &corev1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ED25519"}
		begun := time.Now()
		var tried []time.Duration // when
		for left := s.away; left > 0; time.Sleep(firstPause) {
			if _, _, err := m.Get(t.Context(), pod, "v", 0, p, true); err == nil {
				t.Fatal("a server that is away has answered")
			}
			s.mu.Lock()
			if s.away < left {
				left, tried = s.away, append(tried, time.Since(begun)/time.Second)
			}
			s.mu.Unlock()
		}
		if want := []time.Duration{0, 1, 3, 7, 15, 31, 63, 123, 183}; !slices.Equal(tried, want) {
			t.Errorf("asked after %d seconds, want %d", tried, want)
		}
	})
}

// TestKeysInTurn: keys that cost seconds are made a few at a time. Others do not wait for them, and who waits leaves
// with its pod.
func TestKeysInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		m, pod := manager(t, s)
		ask := func(volume, keyType string) {
			p := &corev1.PodCertificateProjection{SignerName: "example.com/s", KeyType: keyType}
			_, _, err := m.Get(t.Context(), pod, volume, 0, p, true)
			if err == nil || !strings.Contains(err.Error(), "is not issued yet") {
				t.Error(err)
			}
		}
		asked := func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.requests)
		}
		for range cap(m.keys) {
			m.keys <- struct{}{} // as for a key that is being made
		}
		ask("slow", "RSA3072")
		if n := asked(); n != 0 {
			t.Errorf("%d requests with a key that had to wait", n)
		}
		ask("quick", "ED25519")
		if n := asked(); n != 1 {
			t.Errorf("%d requests with a key that had not to wait", n)
		}
		<-m.keys
		synctest.Wait()
		if n := asked(); n != 2 || len(m.keys) != maxKeys-1 {
			t.Errorf("%d requests when it was the turn of the key; %d keys are made", n, len(m.keys))
		}
		m.keys <- struct{}{}
		ask("late", "RSA4096")
		m.Forget(pod.UID)
		synctest.Wait()
		if n := asked(); n != 2 {
			t.Errorf("%d requests after the pod was gone", n)
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	m := &Manager{keys: make(chan struct{}, maxKeys)}
	for _, kind := range []string{"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"} {
		key, err := m.newKey(t.Context(), kind)
		if err != nil {
			t.Fatal(kind, err)
		}
		if _, err := stub(key); err != nil {
			t.Error(kind, err)
		}
		if text, err := privatePEM(key); err != nil || !strings.HasPrefix(string(text), "-----BEGIN PRIVATE KEY-----") {
			t.Error(kind, err)
		}
	}
}
