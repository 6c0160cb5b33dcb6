package nft_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/knftables"

	"bonsai/pkg/proxy"
	"bonsai/pkg/proxy/nft"
)

// fresh is the table that a new proxy writes for services.
func fresh(t *testing.T, names ...string) string {
	t.Helper()
	rec := newRecorder(false)
	if err := nft.New(rec, false, testConfig(), slog.New(slog.DiscardHandler)).Apply(t.Context(),
		updateOf(names...)); err != nil {
		t.Fatal(err)
	}
	return dump(rec)
}

// dump is the table without the order in which elements came.
func dump(rec *recorder) string {
	lines := strings.Split(rec.Dump(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// refusedBy are the services that an error names.
func refusedBy(t *testing.T, err error) []string {
	t.Helper()
	var r *proxy.Refused
	if !errors.As(err, &r) {
		t.Fatalf("want services to be refused, got %v", err)
	}
	var out []string
	for name := range r.Services {
		out = append(out, name.Name)
		if !strings.Contains(err.Error(), name.String()) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
	slices.Sort(out)
	return out
}

// TestRefusedService: what the kernel refuses of one service holds up no other, is named in the error, costs no further
// whole tables, and is written once the kernel takes it. The service keeps its old rules meanwhile.
func TestRefusedService(t *testing.T) {
	t.Parallel()
	rec := newRecorder(false)
	table := nft.New(rec, false, testConfig(), slog.New(slog.DiscardHandler))
	if err := table.Apply(t.Context(), updateOf("a", "b")); err != nil {
		t.Fatal(err)
	}
	const bad = "10.244.9.9"
	change := updateOf("c", "d", "e", "f", "g")
	maps.Copy(change.Services, updateOf("b").Services)
	b := proxy.Name{Namespace: "default", Name: "b"}
	change.Services[b][0].Cluster[0] = mustAddrPort(bad + ":8080")
	change.Services[proxy.Name{Namespace: "default", Name: "a"}] = nil

	rec.refuse = bad
	for round := range 5 {
		runs, written := rec.runs, rec.last.Len()
		err := table.Apply(t.Context(), change)
		if got := refusedBy(t, err); !slices.Equal(got, []string{"b"}) {
			t.Errorf("round %d: %v refused, want b", round, got)
		}
		if diff := cmp.Diff(fresh(t, "b", "c", "d", "e", "f", "g"), dump(rec)); diff != "" {
			t.Errorf("round %d: (-want +got)\n%s", round, diff)
		}
		// The second round writes everything, in case that the table itself was the reason; later ones try only the
		// service.
		if n := rec.last.Len() - written; round > 1 && (rec.runs-runs != 1 || n > 0) {
			t.Errorf("round %d: %d transactions, %d bytes written", round, rec.runs-runs, n)
		}
		change = proxy.Update{}
	}
	rec.refuse = ""
	if err := table.Apply(t.Context(), proxy.Update{}); err != nil {
		t.Fatal(err)
	}
	if got := rec.Dump(); !strings.Contains(got, bad) || strings.Contains(got, "10.244.0.98") {
		t.Errorf("the service was not written:\n%s", got)
	}
	runs := rec.runs
	if err := table.Apply(t.Context(), updateOf("c")); err != nil || rec.runs != runs {
		t.Errorf("a round without changes ran %d transactions, error %v", rec.runs-runs, err)
	}
}

// TestManyRefused: the search for refused services is bounded, and goes on in the next rounds until all others are
// written.
func TestManyRefused(t *testing.T) {
	t.Parallel()
	rec := newRecorder(false)
	table := nft.New(rec, false, testConfig(), slog.New(slog.DiscardHandler))
	u := proxy.Update{Services: map[proxy.Name][]proxy.Port{}}
	for i := range 100 {
		name := proxy.Name{Namespace: "default", Name: fmt.Sprintf("s%d", i)}
		ports := updateOf("x").Services[proxy.Name{Namespace: "default", Name: "x"}]
		ports[0].Service = name
		ports[0].ClusterIP = mustAddrPort(fmt.Sprintf("10.96.0.%d:1", i)).Addr()
		if i%10 == 0 {
			ports[0].Cluster[0] = mustAddrPort(fmt.Sprintf("10.244.9.%d:80", i/10))
		}
		u.Services[name] = ports
	}
	rec.refuse = "10.244.9."
	var last []string
	for range 6 {
		checks := rec.checks
		last = refusedBy(t, table.Apply(t.Context(), u))
		if n := rec.checks - checks; n > 100 {
			t.Errorf("%d checks in one round", n)
		}
		u = proxy.Update{}
	}
	if len(last) != 10 {
		t.Errorf("%d services refused, want 10: %v", len(last), last)
	}
	if n := len(rec.Table.Maps["service-ips"].Elements); n != 90 {
		t.Errorf("%d services written, want 90", n)
	}
}

// TestToolFails: while nothing can be written, no service is blamed, and everything is written afterwards.
func TestToolFails(t *testing.T) {
	t.Parallel()
	rec := newRecorder(false)
	table := nft.New(rec, false, testConfig(), slog.New(slog.DiscardHandler))
	rec.refuse = "kube-proxy"
	var r *proxy.Refused
	if err := table.Apply(t.Context(), updateOf("a", "b")); err == nil || errors.As(err, &r) {
		t.Errorf("got %v, want an error that names no service", err)
	}
	rec.refuse = ""
	if err := table.Apply(t.Context(), proxy.Update{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fresh(t, "a", "b"), dump(rec)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestSomebodyElseChanges: a chain that somebody deleted makes the change of its service fail once; then the table is
// right again.
func TestSomebodyElseChanges(t *testing.T) {
	t.Parallel()
	rec := newRecorder(false)
	table := nft.New(rec, false, testConfig(), slog.New(slog.DiscardHandler))
	if err := table.Apply(t.Context(), updateOf("a", "b")); err != nil {
		t.Fatal(err)
	}
	tx := rec.NewTransaction()
	for name := range rec.Table.Chains {
		if strings.Contains(name, "default/a/") {
			tx.Flush(&knftables.Chain{Name: name})
		}
	}
	tx.Delete(&knftables.Element{Map: "service-ips", Key: []string{"10.96.0.97", "tcp", "80"}})
	if err := rec.Fake.Run(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	gone := proxy.Update{Services: map[proxy.Name][]proxy.Port{{Namespace: "default", Name: "a"}: nil}}
	if got := refusedBy(t, table.Apply(t.Context(), gone)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("refused: %v", got)
	}
	if err := table.Apply(t.Context(), proxy.Update{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fresh(t, "b"), dump(rec)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestWriteOver: a proxy that starts keeps the clients that an earlier one's sets hold, empties everything else, and
// removes what nobody has any more.
func TestWriteOver(t *testing.T) {
	t.Parallel()
	rec := newRecorder(false)
	sticky := func(names ...string) proxy.Update {
		u := updateOf(names...)
		for name := range u.Services {
			u.Services[name][0].AffinitySeconds = 60
		}
		return u
	}
	if err := nft.New(rec, false, testConfig(), slog.New(slog.DiscardHandler)).Apply(t.Context(),
		sticky("a", "b")); err != nil {
		t.Fatal(err)
	}
	tx := rec.NewTransaction()
	for name := range rec.Table.Sets {
		if strings.HasPrefix(name, "affinity-") {
			tx.Add(&knftables.Element{Set: name, Key: []string{"192.0.2.7"}})
		}
	}
	if err := rec.Fake.Run(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	if err := nft.New(rec, false, testConfig(), slog.New(slog.DiscardHandler)).Apply(t.Context(),
		sticky("b", "c")); err != nil {
		t.Fatal(err)
	}
	for name, s := range rec.Table.Sets {
		if !strings.HasPrefix(name, "affinity-") {
			continue
		}
		want := 0
		switch {
		case strings.Contains(name, "default/a/"):
			t.Errorf("set %s is left", name)
		case strings.Contains(name, "default/b/"):
			want = 1
		}
		if len(s.Elements) != want {
			t.Errorf("set %s has %d clients, want %d", name, len(s.Elements), want)
		}
	}
	for name := range rec.Table.Chains {
		if strings.Contains(name, "default/a/") {
			t.Errorf("chain %s is left", name)
		}
	}
	if n := len(rec.Table.Maps["service-ips"].Elements); n != 2 {
		t.Errorf("%d services, want 2", n)
	}
}

// TestMark: packets are marked with the bit that is asked for.
func TestMark(t *testing.T) {
	t.Parallel()
	rec, config := newRecorder(false), testConfig()
	config.MasqueradeMark = 1 << 7
	if err := nft.New(rec, false, config, slog.New(slog.DiscardHandler)).Apply(t.Context(), updateOf("a")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"mark set mark or 0x80", "mark and 0x80 == 0 return", "mark set mark xor 0x80"} {
		if !strings.Contains(rec.Dump(), want) || strings.Contains(rec.Dump(), "0x4000") {
			t.Errorf("no rule %q, or others:\n%s", want, rec.Dump())
		}
	}
}
