package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.9", Ports: []corev1.ServicePort{{Port: 80}}}}
}

func slice(name, owner string, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: owner}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(8080))}},
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return s
}

// changed are the names and endpoint counts that Take reports; -1 is a service that is gone.
func changed(s *State) map[string]int {
	out := map[string]int{}
	for name, ports := range s.Take().Services {
		if ports == nil {
			out[name.Name] = -1
		} else {
			out[name.Name] = len(ports[0].Cluster)
		}
	}
	return out
}

func TestStateReportsChangesOnly(t *testing.T) {
	t.Parallel()
	s := NewState("here")
	expect := func(step string, want map[string]int) {
		t.Helper()
		got := changed(s)
		if len(got) != len(want) {
			t.Errorf("%s: got %v, want %v", step, got, want)
			return
		}
		for k, v := range want {
			if n, ok := got[k]; !ok || n != v {
				t.Errorf("%s: got %v, want %v", step, got, want)
			}
		}
	}
	s.Slices().Replace([]*discoveryv1.EndpointSlice{slice("a-1", "a", "10.0.0.1"), slice("b-1", "b", "10.0.0.2")})
	expect("slices without services", nil)
	if s.Ready() {
		t.Error("ready before services were listed")
	}
	s.Services().Replace([]*corev1.Service{service("a"), service("b")})
	if s.Ready() {
		t.Error("ready before nodes were listed: the routes to all of them would be deleted")
	}
	s.Nodes().Replace(nil)
	if !s.Ready() {
		t.Error("not ready")
	}
	expect("services", map[string]int{"a": 1, "b": 1})
	annotated := service("a")
	annotated.Annotations = map[string]string{"seen": "yes"}
	s.Services().Set(annotated)
	expect("an annotation", nil)
	s.Slices().Set(slice("a-2", "a", "10.0.0.3"))
	expect("a second slice", map[string]int{"a": 2})
	s.Slices().Set(slice("a-2", "b", "10.0.0.3"))
	expect("a slice changes its owner", map[string]int{"a": 1, "b": 2})
	s.Slices().Replace([]*discoveryv1.EndpointSlice{slice("a-1", "a", "10.0.0.1"), slice("a-2", "b", "10.0.0.3")})
	expect("a list without a slice", map[string]int{"b": 1})
	headless := service("a")
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	s.Services().Set(headless)
	expect("a service that nobody proxies any more", map[string]int{"a": -1})
	s.Services().Replace(nil)
	expect("an empty list", map[string]int{"b": -1})
	s.Services().Set(service("b"))
	expect("back again", map[string]int{"b": 1})
	s.Nodes().Set(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "here", Labels: map[string]string{corev1.LabelTopologyZone: "z"}}})
	expect("our zone", map[string]int{"b": 1})
}

// rounds is a Backend that notes when it was called, and fails on demand.
type rounds struct {
	mu    sync.Mutex
	start time.Time
	at    []time.Duration
	fail  int
}

func (r *rounds) Apply(context.Context, Update) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, time.Since(r.start))
	if r.fail > 0 {
		r.fail--
		return errors.New("no")
	}
	return nil
}

// TestLoopTiming: at once after quiet, joined under load, again after errors with back-off, and never before everything
// is listed.
func TestLoopTiming(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewState("here")
		b := &rounds{start: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		l := &Loop{
			State: s, Backends: []Backend{b}, Settle: 10 * time.Millisecond, MinPeriod: 100 * time.Millisecond,
			Begin: func(int) {}, Done: func(int, time.Duration, int, error) {}, Log: slog.New(slog.DiscardHandler),
		}
		go func() { _ = l.Run(ctx) }()
		take := func(d time.Duration) []time.Duration {
			time.Sleep(d)
			synctest.Wait()
			b.mu.Lock()
			defer b.mu.Unlock()
			out := b.at
			b.at, b.start = nil, time.Now()
			return out
		}
		want := func(step string, got []time.Duration, want ...time.Duration) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("%s: rounds at %v, want %v", step, got, want)
			}
		}
		const ms = time.Millisecond
		s.Services().Replace([]*corev1.Service{service("a")})
		want("not all listed", take(time.Second))
		s.Slices().Replace(nil)
		want("no nodes listed", take(time.Second))
		s.Nodes().Replace(nil)
		want("after quiet", take(time.Second), 10*ms)
		s.Services().Delete(service("a"))
		_ = take(20 * ms)
		s.Services().Set(service("a"))
		time.Sleep(30 * ms)
		s.Services().Set(service("b"))
		want("under load", take(time.Second), 90*ms)
		b.fail = 2
		s.Services().Delete(service("a"))
		want("errors", take(2*time.Second), 10*ms, 210*ms, 610*ms)
	})
}

// names is a Backend that notes which services it was told of, and fails as often as it has errors.
type names struct {
	told [][]string
	errs []error
}

func (n *names) Apply(_ context.Context, u Update) error {
	var told []string
	for name := range u.Services {
		told = append(told, name.Name)
	}
	slices.Sort(told)
	n.told = append(n.told, told)
	if len(n.errs) == 0 {
		return nil
	}
	err := n.errs[0]
	n.errs = n.errs[1:]
	return err
}

// TestLoopReportsAgain: services whose rules could not be written are reported until they are; of a round in which
// single ones were refused, only these.
func TestLoopReportsAgain(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	for name, c := range map[string]struct {
		errs []error
		want [][]string
		done []string
	}{
		"nothing written": {[]error{no, no}, [][]string{{"a", "b"}, {"a", "b"}, {"a", "b"}, nil},
			[]string{"0 no", "0 no", "0 <nil>", "0 <nil>"}},
		"a service refused": {
			[]error{fmt.Errorf("write: %w", &Refused{map[Name]error{{Namespace: "ns", Name: "b"}: no}})},
			[][]string{{"a", "b"}, {"b"}, nil}, []string{"1 <nil>", "0 <nil>", "0 <nil>"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, extra := NewState("here"), &names{}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				var done []string
				l := &Loop{
					State: s, Backends: []Backend{&names{errs: c.errs}}, Extras: []Backend{extra},
					Resync: 10 * time.Second,
					Begin:  func(int) {}, Done: func(_ int, _ time.Duration, refused int, err error) {
						done = append(done, fmt.Sprint(refused, err))
					},
					Log: slog.New(slog.DiscardHandler),
				}
				s.Services().Replace([]*corev1.Service{service("a"), service("b")})
				s.Slices().Replace(nil)
				s.Nodes().Replace(nil)
				go func() { _ = l.Run(ctx); close(ended) }()
				time.Sleep(15 * time.Second)
				cancel()
				<-ended
				if !reflect.DeepEqual(extra.told, c.want) {
					t.Errorf("told of %q, want %q", extra.told, c.want)
				}
				if !slices.Equal(done, c.done) {
					t.Errorf("rounds: %q, want %q", done, c.done)
				}
			})
		})
	}
}

// TestRefusedNamesServices: the error says which services, in order, and why.
func TestRefusedNamesServices(t *testing.T) {
	t.Parallel()
	err := &Refused{map[Name]error{{Namespace: "ns", Name: "b"}: errors.New("no"),
		{Namespace: "ns", Name: "a"}: errors.New("never")}}
	if got, want := err.Error(), "service ns/a: never\nservice ns/b: no"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
