package main

import (
	"fmt"
	"log/slog"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/cmd/internal/netnstest"
)

// What is large: a Service has ten endpoints, one in fifty of them on the node.
const (
	largeServices  = 5000
	largeEndpoints = 10
	largeNodes     = 50
)

// BenchmarkLargeServices measures, in a kernel, the first write of all rules and that of one endpoint less and one
// more, in each mode.
func BenchmarkLargeServices(b *testing.B) {
	for _, mode := range []string{modeNFTables, modeIPTables} {
		b.Run(mode, func(b *testing.B) {
			for range b.N {
				largeOnce(b, mode)
			}
		})
	}
}

func largeOnce(b *testing.B, mode string) {
	node := netnstest.New(b, "large")
	state := newState()
	for i := range largeServices {
		name := fmt.Sprint("s", i)
		state.Services().Set(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: corev1.ServiceSpec{
				ClusterIP: netip.AddrFrom4([4]byte{10, 96, byte(i / 250), byte(i%250 + 1)}).String(),
				Ports:     []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}}})
		state.Slices().Set(largeSlice(i, largeEndpoints))
	}
	s := &settings{mode: mode, primaryNodePorts: mode == modeNFTables,
		clusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/9")}}
	node.Do(func() {
		rules, err := s.backends(newMetrics(s.mode, state, prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		write := func() (seconds, cpu float64) {
			u := state.Take()
			began, before := time.Now(), cpuSeconds(b)
			for _, r := range rules {
				if err := r.Apply(b.Context(), u); err != nil {
					b.Fatal(err)
				}
			}
			return time.Since(began).Seconds(), cpuSeconds(b) - before
		}
		first, firstCPU := write()
		b.ReportMetric(first, "s-first")
		b.ReportMetric(firstCPU, "cpu-s-first")
		const changes = 10
		var all, allCPU float64
		for n := range changes {
			state.Slices().Set(largeSlice(7, largeEndpoints-1+n%2))
			took, cpu := write()
			all, allCPU = all+took, allCPU+cpu
		}
		b.ReportMetric(1000*all/changes, "ms-change")
		b.ReportMetric(1000*allCPU/changes, "cpu-ms-change")
	})
}

// cpuSeconds is the CPU time of this process and of the programs that it has run.
func cpuSeconds(b *testing.B) float64 {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if err := syscall.Getrusage(who, &r); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return sum.Seconds()
}

// largeSlice are the first endpoints of service i.
func largeSlice(i, endpoints int) *discoveryv1.EndpointSlice {
	name := fmt.Sprint("s", i)
	sl := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-1",
			Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for e := range endpoints {
		n := i*largeEndpoints + e
		host := "there"
		if n%largeNodes == 0 {
			host = "here"
		}
		sl.Endpoints = append(sl.Endpoints,
			discoveryv1.Endpoint{NodeName: new(host),
				Addresses: []string{netip.AddrFrom4(
					[4]byte{10, byte(128 + n/62500), byte(n / 250 % 250), byte(n%250 + 1)}).String()}})
	}
	return sl
}
