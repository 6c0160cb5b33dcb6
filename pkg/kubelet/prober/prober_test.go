package prober

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/api/kubeversion"
	"bonsai/pkg/kubelet/runtime"
)

func probe(failures int32) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"x"}}},
		PeriodSeconds: 1, FailureThreshold: failures}
}

type bench struct {
	m       *Manager
	code    atomic.Int32
	runs    atomic.Int32
	changes atomic.Int32
	mu      sync.Mutex
	events  []string
}

func setup(ctx context.Context) *bench {
	b := &bench{}
	b.m = New(ctx, Config{Started: time.Now(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Exec: func(context.Context, string, []string, time.Duration) (runtime.ExecResult, error) {
			b.runs.Add(1)
			return runtime.ExecResult{Stdout: []byte("out"), ExitCode: b.code.Load()}, nil
		},
		Changed: func(types.UID) { b.changes.Add(1) },
		Event: func(_ *corev1.Pod, _, _, reason, msg string) {
			b.mu.Lock()
			b.events = append(b.events, reason+": "+msg)
			b.mu.Unlock()
		}})
	return b
}

// told returns the events so far. A bubble's time may pass in the test while a probe writes, so it is read under the
// lock.
func (b *bench) told() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.events)
}

func pod(c corev1.Container) *corev1.Pod {
	c.Name = "c"
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}
}

func target(started time.Time, ready bool) map[string]Target {
	return map[string]Target{"c": {ID: "containerd://1", RawID: "1", Started: started, StartupDone: true, Ready: ready}}
}

// bubble runs the test in a time of its own.
func bubble(t *testing.T, test func(ctx context.Context, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := setup(ctx)
		time.Sleep(time.Second)
		test(ctx, b)
		cancel()
		b.m.Wait()
	})
}

func TestReadinessFollowsTheProbe(t *testing.T) {
	t.Parallel()
	bubble(t, func(_ context.Context, b *bench) {
		b.m.Update(pod(corev1.Container{ReadinessProbe: probe(3)}), target(time.Now(), false))
		synctest.Wait()
		if b.m.Result("containerd://1", Readiness) != runtime.ProbeSuccess || b.changes.Load() != 1 {
			t.Error("the first probe must run at once")
		}
		b.code.Store(1)
		time.Sleep(2500 * time.Millisecond)
		if b.m.Result("containerd://1", Readiness) != runtime.ProbeSuccess {
			t.Error("two failures of three are not enough")
		}
		time.Sleep(time.Second)
		if b.m.Result("containerd://1", Readiness) != runtime.ProbeFailure {
			t.Error("three failures are")
		}
		if told := b.told(); !strings.Contains(strings.Join(told, "\n"), "Unhealthy: Readiness probe failed: out") {
			t.Errorf("events %q", told)
		}
	})
}

// A container that began later than now did so before the clock was put back: its probes begin all the same.
func TestTheClockWasPutBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(_ context.Context, b *bench) {
		p := probe(3)
		p.InitialDelaySeconds = 5
		b.m.Update(pod(corev1.Container{ReadinessProbe: p}), target(time.Now().Add(2*time.Hour), false))
		time.Sleep(4 * time.Second)
		if b.runs.Load() != 0 {
			t.Error("probed before its initial delay has passed")
		}
		time.Sleep(2 * time.Second)
		if b.m.Result("containerd://1", Readiness) != runtime.ProbeSuccess {
			t.Error("not probed before the time of its start has come again")
		}
	})
}

func TestLivenessWaitsForStartupAndHoldsAfterFailure(t *testing.T) {
	t.Parallel()
	bubble(t, func(_ context.Context, b *bench) {
		b.code.Store(1)
		p := pod(corev1.Container{StartupProbe: probe(100), LivenessProbe: probe(1)})
		tg := target(time.Now(), false)
		x := tg["c"]
		x.StartupDone = false
		tg["c"] = x
		b.m.Update(p, tg)
		time.Sleep(5500 * time.Millisecond)
		if b.m.Result("containerd://1", Liveness) != runtime.ProbeUnknown {
			t.Fatal("liveness was probed before startup succeeded")
		}
		b.code.Store(0)
		time.Sleep(time.Second)
		b.m.Update(p, tg) // what the worker does after a change
		time.Sleep(2 * time.Second)
		if b.m.Result("containerd://1", Liveness) != runtime.ProbeSuccess {
			t.Fatal("liveness is not probed after startup")
		}
		b.code.Store(1)
		time.Sleep(1500 * time.Millisecond)
		runs := b.runs.Load()
		time.Sleep(10 * time.Second)
		if b.m.Result("containerd://1", Liveness) != runtime.ProbeFailure || b.runs.Load() != runs {
			t.Errorf("after a failure nothing must be probed until a new container runs: %d runs more",
				b.runs.Load()-runs)
		}
	})
}

func TestRestartOfTheKubeletKeepsReadiness(t *testing.T) {
	t.Parallel()
	bubble(t, func(_ context.Context, b *bench) {
		p := pod(corev1.Container{ReadinessProbe: probe(3)})
		b.m.Update(p, target(time.Now().Add(-time.Hour), true))
		if b.m.Result("containerd://1", Readiness) != runtime.ProbeSuccess || b.changes.Load() != 0 {
			t.Error("a container that was ready must stay so at once")
		}
		b.m.Remove("u")
		if b.m.Result("containerd://1", Readiness) != runtime.ProbeUnknown {
			t.Error("the result outlives the pod")
		}
		b.m.Update(p, target(time.Now().Add(-time.Hour), false))
		if b.m.Result("containerd://1", Readiness) != runtime.ProbeUnknown {
			t.Error("a container that was not ready became so")
		}
	})
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	var seen http.Header
	var host string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen, host = r.Header, r.Host
		switch r.URL.Path {
		case "/bad":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/elsewhere":
			http.Redirect(w, r, "http://example.invalid/", http.StatusFound)
		}
	}))
	defer srv.Close()
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	c := &corev1.Container{Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: int32(n)}}}
	get := func(path string) (bool, bool, string) {
		a := &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("web"),
			HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "h"}}}
		ok, warn, msg, err := httpGet(t.Context(), c, a, Target{PodIP: "127.0.0.1"}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return ok, warn, msg
	}
	if ok, _, _ := get("/ok?x=1"); !ok || seen.Get("User-Agent") != "kube-probe/"+kubeversion.API || host != "h" {
		t.Errorf("ok %v, headers %v, host %s", ok, seen, host)
	}
	if ok, _, msg := get("/bad"); ok || msg != "HTTP probe failed with statuscode: 503" {
		t.Errorf("bad: %v %s", ok, msg)
	}
	if ok, warn, _ := get("/elsewhere"); !ok || !warn {
		t.Error("a redirect to another host succeeds with a warning")
	}
	if ok, _, _, err := tcp(t.Context(), c, &corev1.TCPSocketAction{Port: intstr.FromInt32(int32(n))},
		Target{PodIP: "127.0.0.1"}, time.Second); !ok || err != nil {
		t.Errorf("tcp: %v %v", ok, err)
	}
}

// Probes are counted under upstream's names and labels, as long as their pod is there.
// A server that speaks HTTP/2 alone is probed by it.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			w.WriteHeader(http.StatusHTTPVersionNotSupported)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	a := &corev1.HTTPGetAction{Scheme: corev1.URISchemeHTTPS, Port: intstr.Parse(u.Port())}
	if ok, _, message, err := httpGet(t.Context(), &corev1.Container{}, a, Target{PodIP: u.Hostname()},
		time.Minute); !ok || err != nil {
		t.Errorf("%s, %v", message, err)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	bubble(t, func(_ context.Context, b *bench) {
		r := prometheus.NewRegistry()
		b.m.cfg.Metrics = NewMetrics(r)
		shown := func() string {
			w := httptest.NewRecorder()
			promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w,
				httptest.NewRequest(http.MethodGet, "/metrics/probes", nil))
			return w.Body.String()
		}
		p := pod(corev1.Container{ReadinessProbe: probe(3)})
		b.m.Update(p, target(time.Now(), false))
		synctest.Wait()
		b.code.Store(1)
		time.Sleep(2500 * time.Millisecond)
		labels := `container="c",namespace="` + p.Namespace + `",pod="` + p.Name + `",pod_uid="` + string(p.UID) +
			`",probe_type="Readiness",result=`
		for result, n := range map[string]string{"successful": "1", "failed": "2"} {
			if want := "prober_probe_total{" + labels + `"` + result + `"} ` +
				n; !strings.Contains(shown(), want+"\n") {
				t.Errorf("missing %s in %s", want, shown())
			}
		}
		b.m.Remove(p.UID)
		if strings.Contains(shown(), "probe_type") {
			t.Error("kept of a pod that is gone:", shown())
		}
	})
}

// TestReadinessIsProbedAtEachSync: a container that is not known to be ready is probed when its pod is looked at, not
// only once in each period; one that is ready is left to its period, and nobody is probed before its time.
func TestReadinessIsProbedAtEachSync(t *testing.T) {
	t.Parallel()
	bubble(t, func(_ context.Context, b *bench) {
		b.code.Store(1)
		p := probe(3)
		p.PeriodSeconds = 60
		c, running := pod(corev1.Container{ReadinessProbe: p}), target(time.Now(), false)
		b.m.Update(c, running)
		synctest.Wait()
		b.code.Store(0)
		time.Sleep(300 * time.Millisecond)
		b.m.Update(c, running)
		synctest.Wait()
		if b.m.Result("containerd://1", Readiness) != runtime.ProbeSuccess || b.runs.Load() != 2 {
			t.Errorf("after %d probes: %v", b.runs.Load(), b.m.Result("containerd://1", Readiness))
		}
		for range 3 {
			b.m.Update(c, running)
			synctest.Wait()
		}
		time.Sleep(59 * time.Second)
		if n := b.runs.Load(); n != 2 {
			t.Errorf("ready, and probed %d times", n)
		}
		time.Sleep(2 * time.Second)
		if n := b.runs.Load(); n != 3 {
			t.Errorf("after a period: probed %d times", n)
		}
	})
	bubble(t, func(_ context.Context, b *bench) {
		p := probe(3)
		p.InitialDelaySeconds = 5
		c, running := pod(corev1.Container{ReadinessProbe: p}), target(time.Now(), false)
		for range 4 {
			b.m.Update(c, running)
			time.Sleep(time.Second)
		}
		if n := b.runs.Load(); n != 0 {
			t.Errorf("probed %d times before its time", n)
		}
	})
}

// TestReadinessIsAskedAgainSoon: a container that starts is asked again after 250 ms, 500 ms and so on, and only the
// first failure is told. Once it has been ready, and for liveness, it is the period that counts.
func TestReadinessIsAskedAgainSoon(t *testing.T) {
	t.Parallel()
	bubble(t, func(_ context.Context, b *bench) {
		b.code.Store(1)
		p := probe(3)
		p.PeriodSeconds = 10
		began := time.Now()
		b.m.Update(pod(corev1.Container{ReadinessProbe: p}), target(began, false))
		for _, c := range []struct {
			at   time.Duration
			runs int32
		}{{200, 1}, {300, 2}, {700, 2}, {800, 3}, {1700, 3}, {1800, 4}, {3800, 5}, {7800, 6}, {9900, 6}, {10100, 7},
			{17900, 7}, {18100, 8}, {19900, 8}, {20100, 9}, {29900, 9}} {
			time.Sleep(time.Until(began.Add(c.at * time.Millisecond)))
			if n := b.runs.Load(); n != c.runs {
				t.Errorf("after %d ms: %d probes, want %d", c.at, n, c.runs)
			}
		}
		if told := b.told(); len(told) != 3 {
			t.Errorf("told %d times: %q", len(told), told)
		}
		b.code.Store(0)
		time.Sleep(time.Second)
		if b.m.Result("containerd://1", Readiness) != runtime.ProbeSuccess {
			t.Error("not ready")
		}
		b.code.Store(1)
		runs := b.runs.Load()
		time.Sleep(9 * time.Second)
		if n := b.runs.Load(); n != runs {
			t.Errorf("%d probes within a period of one that has been ready", n-runs)
		}
	})
	bubble(t, func(_ context.Context, b *bench) {
		b.code.Store(1)
		p := probe(30)
		p.PeriodSeconds = 10
		b.m.Update(pod(corev1.Container{LivenessProbe: p}), target(time.Now(), false))
		time.Sleep(9 * time.Second)
		if n := b.runs.Load(); n != 1 {
			t.Errorf("liveness: %d probes within a period", n)
		}
	})
}

// TestANewContainerIsNotAskedEarly: what was planned for a container is not done to its successor, which has its own
// initial delay.
func TestANewContainerIsNotAskedEarly(t *testing.T) {
	t.Parallel()
	bubble(t, func(_ context.Context, b *bench) {
		b.code.Store(1)
		p := probe(3)
		p.InitialDelaySeconds, p.PeriodSeconds = 5, 10
		c := pod(corev1.Container{ReadinessProbe: p})
		b.m.Update(c, target(time.Now().Add(-5*time.Second), false))
		time.Sleep(100 * time.Millisecond)
		runs := b.runs.Load()
		b.m.Update(c, map[string]Target{
			"c": {ID: "containerd://2", RawID: "2", Started: time.Now(), StartupDone: true}})
		time.Sleep(4 * time.Second)
		if n := b.runs.Load(); runs != 1 || n != runs {
			t.Errorf("%d probes of the first, %d before the second's time", runs, n-runs)
		}
	})
}
