package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/api/scheme"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/watchcache"
)

const (
	benchPods = 5000
	asJSON    = "application/json"
	asProto   = "application/vnd.kubernetes.protobuf"
	asTable   = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asMeta    = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
)

// benchPod is a pod of about 0.7 KB, as stored.
func benchPod(i int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"web-5c9f8d7b6d-","name":"web-5c9f8d7b6d-%05d","namespace":"default",
"labels":{"app":"web","pod-template-hash":"5c9f8d7b6d"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-5c9f8d7b6d","uid":"5c9f8d7b-aaaa-bbbb-cccc-%012d","controller":true,"blockOwnerDeletion":true}]},
"spec":{"serviceAccountName":"web","nodeName":"node-%d","containers":[{"name":"web","image":"registry.example/web:1.2.3","ports":[{"containerPort":80}],"resources":{"requests":{"cpu":"100m","memory":"64Mi"}},
"volumeMounts":[{"name":"token","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","readOnly":true}]}],
"volumes":[{"name":"token","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}}]}}]}}`, i, i, i%100)
}

// served is an API over a cache over memory, with the rows of all.
type served struct {
	http.Handler
	stores map[string]*registry.Generic
}

func newServed(tb testing.TB, all []resources.Row) *served { return newServedAt(tb, all, nil) }

// newServedAt takes the clock of tables, too.
func newServedAt(tb testing.TB, all []resources.Row, now func() time.Time) *served {
	tb.Helper()
	facts := &storage.FactsTable{}
	cache, err := watchcache.New(tb.Context(), memory.New(facts), watchcache.Config{Facts: facts})
	if err != nil {
		tb.Fatal(err)
	}
	c, err := catalog.New(tb.Context(), catalog.Config{Facts: facts, Forget: cache.Forget})
	if err != nil {
		tb.Fatal(err)
	}
	api, err := rest.New(rest.Config{Scheme: scheme.New(), Log: slog.New(slog.DiscardHandler), Now: now})
	if err != nil {
		tb.Fatal(err)
	}
	s := &served{stores: map[string]*registry.Generic{}}
	entries := assembletest.Entries(tb, cache, all)
	for i := range entries {
		entries[i].Handle = api.Handler
		if entries[i].Store != nil {
			s.stores[entries[i].Row.StoragePath] = entries[i].Store
		}
	}
	if err := c.Add(entries...); err != nil {
		tb.Fatal(err)
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := rest.InfoOf(r)
		info.Served = c.Snapshot()
		api.ServeHTTP(w, r.WithContext(request.WithInfo(r.Context(), info)))
	})
	return s
}

// ask makes one request and fails unless it is answered with code.
func (s *served) ask(tb testing.TB, w http.ResponseWriter, method, path, accept, body string, code int) {
	r := httptest.NewRequestWithContext(tb.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Accept", accept)
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	sink, ok := w.(*sink)
	if !ok {
		s.ServeHTTP(w, r)
		return
	}
	sink.code = 0
	if s.ServeHTTP(w, r); sink.code != code {
		tb.Fatalf("%s %s: %d", method, path, sink.code)
	}
}

// sink counts what is written to it.
type sink struct {
	header  http.Header
	code, n int
	frames  func(int) // told of each flush, with the bytes so far
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(code int)        { s.code = code }
func (s *sink) Write(b []byte) (int, error) { s.n += len(b); return len(b), nil }
func (s *sink) Flush() {
	if s.frames != nil {
		s.frames(s.n)
	}
}

func newSink() *sink { return &sink{header: http.Header{}} }

// podsServed returns an API with benchPods pods.
func podsServed(b *testing.B) *served {
	s := newServed(b, rows.All())
	var pod corev1.Pod
	for i := range benchPods {
		pod = corev1.Pod{}
		if err := json.Unmarshal([]byte(benchPod(i)), &pod); err != nil {
			b.Fatal(err)
		}
		if _, err := s.stores["pods"].Create(b.Context(), "default", &pod, &metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

func BenchmarkList(b *testing.B) {
	s := podsServed(b)
	for _, c := range []struct{ name, accept string }{{"JSON", asJSON}, {"protobuf", asProto}, {"table", asTable},
		{"metadata", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}} {
		b.Run(c.name, func(b *testing.B) {
			w := newSink()
			s.ask(b, w, http.MethodGet, "/api/v1/pods", c.accept, "", http.StatusOK)
			b.SetBytes(int64(w.n))
			b.ReportAllocs()
			for b.Loop() {
				s.ask(b, w, http.MethodGet, "/api/v1/pods", c.accept, "", http.StatusOK)
			}
		})
	}
	b.Run("selected", func(b *testing.B) {
		w := newSink()
		b.ReportAllocs()
		for b.Loop() {
			s.ask(b, w, http.MethodGet, "/api/v1/pods?labelSelector=app%3Dweb&fieldSelector=spec.nodeName%3Dnode-7",
				asProto, "", http.StatusOK)
		}
	})
}

func BenchmarkGet(b *testing.B) {
	s := podsServed(b)
	for _, c := range []struct{ name, accept string }{{"JSON", asJSON}, {"protobuf", asProto}, {"metadata", asMeta}} {
		b.Run(c.name, func(b *testing.B) {
			w, i := newSink(), 0
			b.ReportAllocs()
			for b.Loop() {
				s.ask(b, w, http.MethodGet,
					fmt.Sprintf("/api/v1/namespaces/default/pods/web-5c9f8d7b6d-%05d", i%benchPods), c.accept, "",
					http.StatusOK)
				i++
			}
		})
	}
}

func BenchmarkPatch(b *testing.B) {
	s := podsServed(b)
	for _, c := range []struct{ name, accept string }{{"JSON", asJSON}, {"protobuf", asProto}} {
		b.Run(c.name, func(b *testing.B) {
			w, i := newSink(), 0
			b.ReportAllocs()
			for b.Loop() {
				s.ask(b, w, http.MethodPatch,
					fmt.Sprintf("/api/v1/namespaces/default/pods/web-5c9f8d7b6d-%05d", i%benchPods), c.accept,
					fmt.Sprintf(`{"metadata":{"annotations":{"i":"%s-%d"}}}`, c.name, i), http.StatusOK)
				i++
			}
		})
	}
}

// BenchmarkWatch: one operation is one change, made by a client that speaks protobuf and seen by 50 watchers.
func BenchmarkWatch(b *testing.B) {
	const watchers = 50
	for _, c := range []struct{ name, accept, path, stored string }{
		{"JSON", asJSON, "/api/v1/pods", "pods"}, {"protobuf", asProto, "/api/v1/pods", "pods"},
		{"table", asTable, "/api/v1/pods", "pods"},
		{"metadata", asMeta, "/api/v1/pods", "pods"}, {"view", asJSON, "/apis/events.k8s.io/v1/events", "events"},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newServed(b, rows.All())
			path, body := "/api/v1/namespaces/default/pods/web-5c9f8d7b6d-00000", benchPod(0)
			if c.stored == "events" {
				path = "/api/v1/namespaces/default/events/e"
				body = `{"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","namespace":"default","name":"web-0"},"reason":"Started","message":"Started container web","type":"Normal","source":{"component":"kubelet","host":"n"}}`
			}
			s.ask(b, newSink(), http.MethodPost, path[:strings.LastIndex(path, "/")], asProto, body, http.StatusCreated)
			ctx, cancel := context.WithCancel(b.Context())
			var wg sync.WaitGroup
			ready, seen := make(chan struct{}, watchers), make([]chan struct{}, watchers)
			for i := range watchers {
				seen[i] = make(chan struct{}, 1)
				flushes := 0
				w := newSink()
				w.frames = func(int) {
					if flushes++; flushes == 2 {
						ready <- struct{}{}
					} else if flushes > 2 {
						seen[i] <- struct{}{}
					}
				}
				wg.Go(func() {
					r := httptest.NewRequestWithContext(ctx, http.MethodGet, c.path+"?watch=1", nil)
					r.Header.Set("Accept", c.accept)
					s.ServeHTTP(w, r)
				})
			}
			for range watchers {
				<-ready
			}
			w, i := newSink(), 0
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				i++
				s.ask(b, w, http.MethodPatch, path, asProto, fmt.Sprintf(`{"metadata":{"annotations":{"i":"%d"}}}`, i),
					http.StatusOK)
				for _, told := range seen {
					<-told
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(i), "cpu-ns/op")
			cancel()
			wg.Wait()
		})
	}
}

// cpuTime is what this process has used, of which the waits between bursts of events are no part.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
