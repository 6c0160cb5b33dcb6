// Package dashboards holds our metrics against what the well-known dashboards and alerts for Kubernetes ask.
package dashboards

import (
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/apiserver/storage/etcdtest"
)

// pages are the pages of docs/reference/metrics that have a component's metrics, each held against its collectors by a
// test of its own.
var pages = map[string][]string{
	"kube-apiserver":          {"kube-apiserver", "kube-apiserver-storage", "common"},
	"kube-controller-manager": {"kube-controller-manager", "common"},
	"kube-proxy":              {"kube-proxy", "common"},
	"kube-scheduler":          {"kube-scheduler", "common"},
	"kubelet":                 {"kubelet", "kubelet-cadvisor", "common"},
}

const (
	gone    = "a real one of 1.37.2 does not have it either"
	peers   = "only a member with peers shows it"
	noQueue = "the API server has no queues of controllers"
)

// absent are the series that are asked and not there, "component series", with the reasons.
var absent = map[string]string{
	"etcd etcd_network_peer_received_bytes_total":                        peers,
	"etcd etcd_network_peer_round_trip_time_seconds_bucket":              peers,
	"etcd etcd_network_peer_sent_bytes_total":                            peers,
	"etcd etcd_network_peer_sent_failures_total":                         peers,
	"etcd grpc_server_handling_seconds_bucket":                           "only with --metrics=extensive",
	"kube-apiserver rest_client_requests_total":                          "it reads its storage, and is no client of itself",
	"kube-apiserver workqueue_adds_total":                                noQueue,
	"kube-apiserver workqueue_depth":                                     noQueue,
	"kube-apiserver workqueue_queue_duration_seconds_bucket":             noQueue,
	"kube-scheduler scheduler_volume_scheduling_duration_seconds_bucket": gone,
	"kube-scheduler scheduler_volume_scheduling_duration_seconds_count":  gone,
	"kubelet kubelet_node_config_error":                                  gone,
	"kubelet storage_operation_errors_total":                             gone,
}

// asked is one line of testdata/asked.txt.
type asked struct {
	component, series string
	labels            []string
}

func readAsked(t *testing.T) (all []asked) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "asked.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		a := asked{component: fields[0], series: fields[1]}
		if len(fields) > 2 {
			a.labels = strings.Split(fields[2], ",")
		}
		all = append(all, a)
	}
	if len(all) < 100 {
		t.Fatalf("only %d series are asked", len(all))
	}
	return all
}

// metric is a metric that is shown.
type metric struct {
	kind   string
	labels []string
}

// TestComponents: each query finds the series of our components, with its labels.
func TestComponents(t *testing.T) {
	t.Parallel()
	shown := map[string]map[string]metric{}
	for component, names := range pages {
		shown[component] = map[string]metric{}
		for _, name := range names {
			readPage(t, name, shown[component])
		}
	}
	// The common page has the metrics of clients too, and says that this one is none.
	maps.DeleteFunc(shown["kube-apiserver"], func(name string, _ metric) bool {
		return strings.HasPrefix(name, "rest_client_")
	})
	for _, a := range readAsked(t) {
		if have, ours := shown[a.component]; ours {
			a.check(t, have)
		}
	}
}

// TestEtcd: each query finds the series of the etcd that clusters run, with its labels.
func TestEtcd(t *testing.T) {
	t.Parallel()
	shown := exposed(t, etcdtest.Start(t).Endpoint+"/metrics")
	for _, a := range readAsked(t) {
		if a.component == "etcd" {
			a.check(t, shown)
		}
	}
}

// check wants the series among the metrics that are shown, or a reason in absent.
func (a *asked) check(t *testing.T, shown map[string]metric) {
	t.Helper()
	m, there := shown[a.series]
	labels := m.labels
	for suffix, more := range map[string]string{"_bucket": "le", "_sum": "", "_count": ""} {
		name, cut := strings.CutSuffix(a.series, suffix)
		if h, ok := shown[name]; cut && ok && (h.kind == "histogram" || h.kind == "summary" && more == "") {
			there, labels = true, append(slices.Clone(h.labels), more)
		}
	}
	reason := absent[a.component+" "+a.series]
	switch {
	case there && reason != "":
		t.Errorf("%s has %s, which is said to be absent: %s", a.component, a.series, reason)
	case !there && reason == "":
		t.Errorf("%s has no %s", a.component, a.series)
	}
	for _, label := range a.labels {
		if there && !slices.Contains(labels, label) {
			t.Errorf("%s of %s has no label %s", a.series, a.component, label)
		}
	}
}

// TestAbsent: nothing is excused that is not asked.
func TestAbsent(t *testing.T) {
	t.Parallel()
	all := readAsked(t)
	for name := range absent {
		if !slices.ContainsFunc(all, func(a asked) bool { return a.component+" "+a.series == name }) {
			t.Errorf("%s is excused, and not asked", name)
		}
	}
}

var row = regexp.MustCompile("(?m)^\\| `([a-zA-Z0-9_]+)` \\| ([a-z]+) \\| (?:`([^`]*)`)?")

// readPage adds the metrics of a page of docs/reference/metrics.
func readPage(t *testing.T, name string, to map[string]metric) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "metrics", name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		to[m[1]] = metric{m[2], strings.Split(m[3], ", ")}
	}
}

var (
	kind   = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)
	sample = regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? \S+$`)
	label  = regexp.MustCompile(`(\w+)="`)
	suffix = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// exposed reads the page of metrics at a URL.
func exposed(t *testing.T, url string) map[string]metric {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s %v", url, resp.Status, text, err)
	}
	all := map[string]metric{}
	for _, m := range kind.FindAllStringSubmatch(string(text), -1) {
		all[m[1]] = metric{kind: m[2]}
	}
	for _, m := range sample.FindAllStringSubmatch(string(text), -1) {
		for _, name := range []string{m[1], suffix.ReplaceAllString(m[1], "")} {
			if one, ok := all[name]; ok {
				for _, l := range label.FindAllStringSubmatch(m[2], -1) {
					one.labels = append(one.labels, l[1])
				}
				all[name] = one
			}
		}
	}
	return all
}
