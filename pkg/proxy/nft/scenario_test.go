package nft_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/knftables"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/proxy"
	"bonsai/pkg/proxy/nft"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestScenarios plays testdata/*.yaml: Services, EndpointSlices and Nodes as the API has them, seen from node "here". A
// document "kind: Sync" applies what changed; an object with the annotation "gone" is deleted. The golden file has the
// whole table after the first sync and the commands of each later one.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			got := play(t, file)
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got; go test -update rewrites)\n%s", diff)
			}
		})
	}
}

func testConfig() nft.Config {
	return nft.Config{
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:10::/48")},
	}
}

func play(t *testing.T, file string) string {
	t.Helper()
	six := strings.Contains(filepath.Base(file), "ipv6")
	rec := newRecorder(six)
	table := nft.New(rec, six, testConfig(), slog.New(slog.DiscardHandler))
	state := proxy.NewState("here")
	state.ServiceCIDRs().Set(
		&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
			Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16", "fd00:96::/108"}}})
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	syncs := 0
	for doc := range strings.SplitSeq(string(data)+"\n---\nkind: Sync\n", "\n---\n") {
		if !feed(t, state, []byte(doc)) {
			continue
		}
		rec.last.Reset()
		if err := table.Apply(t.Context(), state.Take()); err != nil {
			t.Fatalf("sync %d: %v", syncs, err)
		}
		if syncs++; syncs == 1 {
			fmt.Fprintf(&out, "# first sync: the table\n%s", rec.Dump())
		} else {
			fmt.Fprintf(&out, "\n# sync %d: the commands\n%s", syncs, rec.last.String())
		}
	}
	return out.String()
}

// feed gives one document to the state; it answers true for a Sync.
func feed(t *testing.T, state *proxy.State, doc []byte) bool {
	t.Helper()
	var head struct {
		Kind     string
		Metadata struct{ Annotations map[string]string }
	}
	if err := yaml.Unmarshal(doc, &head); err != nil {
		t.Fatalf("%v in\n%s", err, doc)
	}
	_, gone := head.Metadata.Annotations["gone"]
	switch head.Kind {
	case "Sync":
		return true
	case "Service":
		give(t, doc, gone, state.Services(), &corev1.Service{})
	case "EndpointSlice":
		give(t, doc, gone, state.Slices(), &discoveryv1.EndpointSlice{})
	case "Node":
		give(t, doc, gone, state.Nodes(), &corev1.Node{})
	default:
		t.Fatalf("unknown kind %q in\n%s", head.Kind, doc)
	}
	return false
}

func give[T any](t *testing.T, doc []byte, gone bool, sink apiclient.Sink[*T], into *T) {
	t.Helper()
	if err := yaml.UnmarshalStrict(doc, into); err != nil {
		t.Fatalf("%v in\n%s", err, doc)
	}
	if gone {
		sink.Delete(into)
	} else {
		sink.Set(into)
	}
}

// recorder is a fake nft that remembers the last transaction and refuses what mentions a text.
type recorder struct {
	*knftables.Fake
	last         bytes.Buffer
	refuse       string
	runs, checks int
}

func newRecorder(six bool) *recorder {
	family := knftables.IPv4Family
	if six {
		family = knftables.IPv6Family
	}
	return &recorder{Fake: knftables.NewFake(family, "kube-proxy")}
}

func (r *recorder) Run(ctx context.Context, tx *knftables.Transaction) error {
	r.runs++
	if r.refuse != "" && strings.Contains(tx.String(), r.refuse) {
		return errors.New("the kernel said no")
	}
	r.last.WriteString(tx.String())
	return r.Fake.Run(ctx, tx)
}

func (r *recorder) Check(ctx context.Context, tx *knftables.Transaction) error {
	r.checks++
	if r.refuse != "" && strings.Contains(tx.String(), r.refuse) {
		return errors.New("the kernel said no")
	}
	return r.Fake.Check(ctx, tx)
}

// updateOf makes services with one endpoint each; equal names give equal services.
func updateOf(names ...string) proxy.Update {
	u := proxy.Update{Services: map[proxy.Name][]proxy.Port{}}
	for _, n := range names {
		last := n[0]
		name := proxy.Name{Namespace: "default", Name: n}
		u.Services[name] = []proxy.Port{{
			Service: name, Protocol: corev1.ProtocolTCP, ClusterIP: netip.AddrFrom4([4]byte{10, 96, 0, last}),
			Number:  80,
			Cluster: []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, 0, last}), 8080)},
		}}
	}
	return u
}

// TestSharedExternalIP: of two services with one external address and port the first keeps it; the other takes over
// when it goes.
func TestSharedExternalIP(t *testing.T) {
	t.Parallel()
	rec := newRecorder(false)
	table := nft.New(rec, false, testConfig(), slog.New(slog.DiscardHandler))
	u := updateOf("a", "b")
	for name := range u.Services {
		u.Services[name][0].ExternalIPs = []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	}
	verdict := func() string {
		e := rec.Table.Maps["service-ips"].FindElement("192.0.2.1", "tcp", "80")
		if e == nil {
			return ""
		}
		return e.Value[0]
	}
	if err := table.Apply(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	if got := verdict(); !strings.HasSuffix(got, "default/a/tcp/") {
		t.Errorf("two services: %q", got)
	}
	if err := table.Apply(t.Context(),
		proxy.Update{Services: map[proxy.Name][]proxy.Port{{Namespace: "default", Name: "a"}: nil}}); err != nil {
		t.Fatal(err)
	}
	if got := verdict(); !strings.HasSuffix(got, "default/b/tcp/") {
		t.Errorf("one left: %q", got)
	}
	if err := table.Apply(t.Context(),
		proxy.Update{Services: map[proxy.Name][]proxy.Port{{Namespace: "default", Name: "b"}: nil}}); err != nil {
		t.Fatal(err)
	}
	if got := verdict(); got != "" {
		t.Errorf("none left: %q", got)
	}
}

func mustAddrPort(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }
