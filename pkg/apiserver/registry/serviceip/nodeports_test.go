package serviceip

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

func nodePortService(name string, ports ...int32) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}}
	for _, n := range ports {
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{NodePort: n})
	}
	return svc
}

func newTestPorts(s Storage, first, last int, services ...*corev1.Service) *nodePorts {
	return newNodePorts(s, first, last, rand.New(rand.NewPCG(1, 2)), func(context.Context) ([]*corev1.Service, error) {
		return services, nil
	})
}

// taken lists the ports that are taken.
func taken(t *testing.T, p *nodePorts) (out []int) {
	t.Helper()
	if err := p.look(t.Context(), func(n *numbers) error {
		for i := range n.size {
			if n.has(i) {
				out = append(out, p.first+i)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func take(ports ...int) func(*numbers) error {
	return func(n *numbers) error {
		for _, port := range ports {
			if !n.take(port) {
				return errPortTaken
			}
		}
		return nil
	}
}

// The bytes are those that kube-apiserver v1.36.3 has stored with node port 30001.
func TestNodePortsAsStored(t *testing.T) {
	t.Parallel()
	s := memory.New(nil)
	p := newTestPorts(s, 30000, 32767)
	if err := p.change(t.Context(), take(1)); err != nil {
		t.Fatal(err)
	}
	item, err := s.Get(t.Context(), nodePortsKey, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []byte("k8s\x00\n\x15\n\x02v1\x12\x0fRangeAllocation\x12\"\n\x10\n\x00\x12\x00\x1a\x00\"\x00*\x002\x008\x00B\x00\x12\x0b30000-32767\x1a\x01\x02\x1a\x00\"\x00")
	if !bytes.Equal(item.Value(), want) {
		t.Errorf("stored %q\n  want %q", item.Value(), want)
	}
	// Another range has other places for the same ports.
	if got, want := taken(t, newTestPorts(s, 29990, 30010)), []int{30001}; !slices.Equal(got, want) {
		t.Errorf("read with another range: %v, want %v", got, want)
	}
}

// Where nothing is stored, as before there was an object for it, the ports of services are taken.
func TestNodePortsBegin(t *testing.T) {
	t.Parallel()
	p := newTestPorts(memory.New(nil), 30000, 30009, nodePortService("a", 30003, 30005),
		nodePortService("outside", 29000))
	if err := p.change(t.Context(), take(3)); err != errPortTaken { //nolint:errorlint // as it is
		t.Errorf("a service's port was given away: %v", err)
	}
	if err := p.change(t.Context(), take(4)); err != nil {
		t.Fatal(err)
	}
	if got, want := taken(t, p), []int{30003, 30004, 30005}; !slices.Equal(got, want) {
		t.Errorf("taken %v, want %v", got, want)
	}
}

// TestNodePortsOfSeveralServers: what several servers take at the same time, each takes for itself.
func TestNodePortsOfSeveralServers(t *testing.T) {
	t.Parallel()
	s := memory.New(nil)
	var mu sync.Mutex
	owner := map[int]int{}
	var wg sync.WaitGroup
	for server := range 3 {
		p := newTestPorts(s, 30000, 30059)
		for range 4 {
			wg.Go(func() {
				for range 5 {
					var got int
					if err := p.change(t.Context(), func(n *numbers) error {
						got, _ = n.next(p.random)
						return nil
					}); err != nil {
						t.Error(err)
					}
					mu.Lock()
					if other, ok := owner[got]; ok {
						t.Errorf("server %d got %d, which server %d has", server, got, other)
					}
					owner[got] = server
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	if len(owner) != 60 {
		t.Errorf("%d ports were given, want 60", len(owner))
	}
}

// TestRepairNodePorts: what a service has is taken; what none has is given back after a minute, and not if ports change
// meanwhile.
func TestRepairNodePorts(t *testing.T) {
	t.Parallel()
	s := memory.New(nil)
	if err := newTestPorts(s, 30000, 30009).change(t.Context(), take(1, 2, 7)); err != nil {
		t.Fatal(err)
	}
	p := newTestPorts(s, 30000, 30009, nodePortService("a", 30002), nodePortService("b", 30004))
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	repair := func(after time.Duration) ([]int, time.Time) {
		t.Helper()
		leaks, again, err := p.repair(t.Context(), begin.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return leaks, again
	}
	if leaks, again := repair(0); len(leaks) > 0 || !again.Equal(begin.Add(leakAge)) {
		t.Errorf("at first %v leak, again at %v", leaks, again)
	}
	if got, want := taken(t, p), []int{30001, 30002, 30004, 30007}; !slices.Equal(got, want) {
		t.Errorf("taken %v, want %v", got, want)
	}
	if err := p.release(t.Context(), []int{30007}); err != nil { // its service was never stored
		t.Fatal(err)
	}
	repair(30 * time.Second)
	if err := p.change(t.Context(), take(7)); err != nil { // for another service, which is not stored yet
		t.Fatal(err)
	}
	if leaks, again := repair(leakAge); !slices.Equal(leaks, []int{30001}) || !again.Equal(begin.Add(2*leakAge)) {
		t.Errorf("after a minute %v leak, again at %v", leaks, again)
	}
	p.storage = meddler{s, func() {
		if err := newTestPorts(s, 30000, 30009).change(t.Context(), take(9)); err != nil {
			t.Error(err)
		}
	}}
	if leaks, again := repair(3 * leakAge); len(leaks) > 0 || !again.Equal(begin.Add(3*leakAge+retryAfter)) {
		t.Errorf("beside a change %v leak, again at %v", leaks, again)
	}
	if got, want := taken(t, p), []int{30002, 30004, 30007, 30009}; !slices.Equal(got, want) {
		t.Errorf("taken %v, want %v", got, want)
	}
}

// meddler changes what is stored before each Update.
type meddler struct {
	Storage
	before func()
}

func (m meddler) Update(ctx context.Context, key string,
	change func(*storage.Item) (storage.Draft, error)) (*storage.Item, error) {
	m.before()
	return m.Storage.Update(ctx, key, change)
}

func TestSharedNodePorts(t *testing.T) {
	t.Parallel()
	p := newTestPorts(memory.New(nil), 30000, 30009)
	got := p.shared([]*corev1.Service{nodePortService("a", 30001, 30001, 30002), nodePortService("b", 30003),
		nodePortService("c", 30002)})
	if want := []string{"30002 of ns/c, and of ns/a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
