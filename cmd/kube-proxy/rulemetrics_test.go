package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/proxy"
	"bonsai/pkg/proxy/iptables"
	"bonsai/pkg/proxy/nft"
	"bonsai/pkg/referencetest"
)

// TestMetricFamilies: names, types, labels and numbers of buckets are those that kube-proxy 1.37.2 shows.
func TestMetricFamilies(t *testing.T) {
	t.Parallel()
	both := []string{
		"endpoint_changes_pending GAUGE []", "endpoint_changes_total COUNTER []", "service_changes_pending GAUGE []",
		"service_changes_total COUNTER []",
		"duration_seconds HISTOGRAM [ip_family] 15", "last_timestamp_seconds GAUGE [ip_family]",
		"last_queued_timestamp_seconds GAUGE [ip_family]",
		"no_local_endpoints_total GAUGE [ip_family traffic_policy]",
	}
	for mode, more := range map[string][]string{
		modeNFTables: {"nftables_sync_failures_total COUNTER [ip_family]"},
		modeIPTables: {
			"iptables_total GAUGE [ip_family table]", "iptables_last GAUGE [ip_family table]",
			"iptables_restore_failures_total COUNTER [ip_family]",
			"iptables_partial_restore_failures_total COUNTER [ip_family]",
		},
	} {
		want := map[string]bool{
			"kubeproxy_network_programming_duration_seconds HISTOGRAM [ip_family] 81":      true,
			"kubeproxy_sync_full_proxy_rules_duration_seconds HISTOGRAM [ip_family] 15":    true,
			"kubeproxy_sync_partial_proxy_rules_duration_seconds HISTOGRAM [ip_family] 15": true,
			"kubeproxy_proxy_healthz_total COUNTER [code]":                                 true,
			"kubeproxy_proxy_livez_total COUNTER [code]":                                   true,
		}
		for _, line := range slices.Concat(both, more) {
			want["kubeproxy_sync_proxy_rules_"+line] = true
		}
		r := prometheus.NewRegistry()
		m := newMetrics(mode, proxy.NewState("here"), r)
		m.queue(2, time.Unix(1, 0))
		m.done(families[0], time.Second, time.Unix(1, 0), true, 1)
		m.wrote(nft.Round{})
		m.wrote(nft.Round{Full: true})
		m.programmed.WithLabelValues(families[0]).Observe(1)
		m.noLocal.WithLabelValues(families[0], "internal").Set(1)
		m.healthz.WithLabelValues("200").Inc()
		m.livez.WithLabelValues("200").Inc()
		if mode == modeIPTables {
			m.restored(iptables.Round{Total: map[string]int{"nat": 1}})
			m.restored(iptables.Round{Err: errors.New("no")})
			m.restored(iptables.Round{Full: true, Err: errors.New("no")})
		}
		got := map[string]bool{}
		for _, f := range gathered(t, r) {
			var labels []string
			for _, l := range f.Metric[0].Label {
				labels = append(labels, l.GetName())
			}
			line := fmt.Sprint(f.GetName(), " ", f.GetType(), " ", labels)
			if h := f.Metric[0].Histogram; h != nil {
				line += fmt.Sprint(" ", len(h.Bucket))
			}
			got[line] = true
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", mode, strings.Join(slices.Sorted(maps.Keys(got)), "\n"),
				strings.Join(slices.Sorted(maps.Keys(want)), "\n"))
		}
	}
}

func gathered(t *testing.T, r prometheus.Gatherer) []*dto.MetricFamily {
	t.Helper()
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// value is that of a metric without labels but these.
func value(t *testing.T, r prometheus.Gatherer, name string, labels ...string) float64 {
	t.Helper()
	for _, f := range gathered(t, r) {
		for _, m := range f.Metric {
			var values []string
			for _, l := range m.Label {
				values = append(values, l.GetValue())
			}
			if f.GetName() != "kubeproxy_"+name || !slices.Equal(values, labels) {
				continue
			}
			if m.Histogram != nil {
				return m.Histogram.GetSampleSum()
			}
			return m.Gauge.GetValue() + m.Counter.GetValue()
		}
	}
	return -1
}

// failing fails as long as err is set.
type failing struct{ err error }

func (f *failing) Apply(context.Context, proxy.Update) error { return f.err }

// TestObserver: changes, how long they took to be written, and ports of policy Local without endpoints here are
// counted.
func TestObserver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, state, kernel := prometheus.NewRegistry(), proxy.NewState("here"), &failing{}
		m := newMetrics(modeNFTables, state, r)
		state.Queued = func() { m.queue(1, time.Now()) }
		h := newHealth(1, time.Minute, m, state.Leaving, time.Now)
		loop := &proxy.Loop{
			State: state, Backends: []proxy.Backend{kernel},
			Extras: []proxy.Backend{&observer{health: h, lacking: map[proxy.Name]lack{}}},
			Settle: time.Second, Log: slog.New(slog.DiscardHandler), Begin: h.begin, Done: h.done,
		}
		local := corev1.ServiceInternalTrafficPolicyLocal
		set := func(node, trigger string) {
			state.Slices().Set(&discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-1",
					Labels:      map[string]string{discoveryv1.LabelServiceName: "a"},
					Annotations: map[string]string{corev1.EndpointsLastChangeTriggerTime: trigger}},
				AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(8080))}},
				Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.1"}, NodeName: new(node)}},
			})
		}
		state.Services().Replace([]*corev1.Service{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"},
			Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.9", Type: corev1.ServiceTypeNodePort,
				InternalTrafficPolicy: &local,
				ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
				Ports:                 []corev1.ServicePort{{Port: 80, NodePort: 30080}}},
		}})
		set("there", "2000-01-01T00:00:00Z") // was there before the proxy
		state.Slices().Replace([]*discoveryv1.EndpointSlice{})
		set("there", "")
		state.Nodes().Replace(nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { _ = loop.Run(ctx); close(ended) }()
		expect := func(step string, want float64, name string, labels ...string) {
			t.Helper()
			if got := value(t, r, name, labels...); got != want {
				t.Errorf("%s: %s%q is %v, want %v", step, name, labels, got, want)
			}
		}
		expect("before", 1, "sync_proxy_rules_service_changes_pending")
		time.Sleep(10 * time.Second)
		expect("written", 1, "sync_proxy_rules_no_local_endpoints_total", "IPv4", "internal")
		expect("written", 1, "sync_proxy_rules_no_local_endpoints_total", "IPv4", "external")
		expect("written", 0, "sync_proxy_rules_service_changes_pending")
		expect("written", 1, "sync_proxy_rules_service_changes_total")
		expect("written", 0, "sync_proxy_rules_endpoint_changes_pending")
		expect("written", -1, "network_programming_duration_seconds", "IPv4")

		changed := time.Now().Add(-2 * time.Second)
		set("here", changed.Format(time.RFC3339Nano))
		expect("changed", 1, "sync_proxy_rules_endpoint_changes_pending")
		expect("changed", seconds(time.Now()), "sync_proxy_rules_last_queued_timestamp_seconds", "IPv4")
		time.Sleep(10 * time.Second)
		expect("here", 0, "sync_proxy_rules_no_local_endpoints_total", "IPv4", "internal")
		expect("here", 0, "sync_proxy_rules_no_local_endpoints_total", "IPv4", "external")
		expect("here", 3, "network_programming_duration_seconds", "IPv4") // two before, one to settle
		expect("here", -1, "sync_proxy_rules_nftables_sync_failures_total", "IPv4")

		kernel.err = errors.New("no")
		set("there", time.Now().Format(time.RFC3339Nano))
		time.Sleep(1500 * time.Millisecond)
		expect("failed", 3, "network_programming_duration_seconds", "IPv4")
		if value(t, r, "sync_proxy_rules_nftables_sync_failures_total", "IPv4") < 1 {
			t.Error("no failure is counted")
		}
		cancel()
		<-ended
	})
}

// TestReferenceMetrics: docs/reference has the metrics of both modes as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	shown := map[string]referencetest.Metric{}
	for _, mode := range []string{modeNFTables, modeIPTables} {
		r := referencetest.NewRegistry()
		newMetrics(mode, proxy.NewState("here"), r)
		for _, m := range r.Metrics() {
			shown[m.Name] = m
		}
	}
	all := slices.SortedFunc(maps.Values(shown), func(a, b referencetest.Metric) int {
		return strings.Compare(a.Name, b.Name)
	})
	referencetest.MetricsPage(t, component, "Metrics of kube-proxy",
		"At `/metrics`, beside [those of every component](common.md). "+
			"Those with `iptables` or `nftables` in their names belong to that mode.", "./cmd/kube-proxy", all)
}
