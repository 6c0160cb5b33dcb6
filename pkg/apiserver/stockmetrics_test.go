package apiserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/assemble"
)

// TestStockMetrics holds metrics of the API server against those of a real kube-apiserver that was asked the same:
// names, types, stability, labels, and the bounds of buckets and quantiles.
//
// testdata/metrics/kube-apiserver.txt is what it answered, without the values, and one line for all that differ only in
// the values of labels. The metrics of admission, authorization and the cache of tokens are those of v1.36.3, the
// others those of v1.37.2:
//
//	curl …/metrics | grep -E "$stockFamilies" | sed -E '/^#/!s/ [^ ]+$//'
func TestStockMetrics(t *testing.T) {
	t.Parallel()
	url := start(t, func(c *assemble.Config) {
		r := prometheus.NewRegistry()
		c.HTTP.Metrics = r
		withCountedParts(t, c, r)
	})
	ask := func(method, path, token, body string, want int) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		answer, err := plain("").Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close() //nolint:errcheck // it was read
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != want {
			t.Fatalf("%s %s: %d %s, %v", method, path, answer.StatusCode, text, err)
		}
		return string(text)
	}
	const admin, accounts = "auditadm", "/api/v1/namespaces/metrics/serviceaccounts"
	ask("POST", "/api/v1/namespaces", admin, `{"metadata":{"name":"metrics"}}`, http.StatusCreated)
	ask("POST", accounts, admin, `{"metadata":{"name":"x"}}`, http.StatusCreated)
	var token struct{ Status struct{ Token string } }
	issued := ask("POST", accounts+"/x/token", admin, `{}`, http.StatusCreated)
	if err := json.Unmarshal([]byte(issued), &token); err != nil {
		t.Fatal(err)
	}
	ask("GET", "/api/v1/secrets", token.Status.Token, "", http.StatusForbidden)
	ask("GET", "/api/v1/secrets", token.Status.Token, "", http.StatusForbidden)
	ask("GET", "/api/v1/endpoints", admin, "", http.StatusOK)
	ask("GET", "/api/v1/pods?resourceVersion=99999999&timeout=20ms", admin, "", http.StatusGatewayTimeout)
	ask("GET", "/api/v1/namespaces?watch=1&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true"+
		"&resourceVersionMatch=NotOlderThan", admin, "", http.StatusOK)
	ask("GET", "/api/v1/pods", "bad", "", http.StatusUnauthorized)
	page := ask("GET", "/metrics", admin, "", http.StatusOK)
	recorded, err := os.ReadFile("testdata/metrics/kube-apiserver.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, want := shapes(page), shapes(string(recorded))
	if len(want) < 60 {
		t.Fatalf("only %d lines are recorded", len(want))
	}
	for line := range want {
		if !got[line] {
			t.Errorf("there is no %s", line)
		}
	}
	for line := range got {
		if family := stockFamilies.FindString(line); family != "" && !want[line] {
			t.Errorf("the real one has no %s", line)
		}
	}
	for _, line := range []string{`authentication_token_cache_request_total{status="hit"} 1`,
		`authentication_token_cache_request_total{status="miss"} 1`,
		`authentication_token_cache_fetch_total{status="ok"} 1`,
		`authentication_token_cache_active_fetch_count{status="in_flight"} 0`,
		`authorization_attempts_total{result="no-opinion"} 2`,
		`authentication_attempts{result="error"} 1`,
		`apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="",version="v1"} 1`,
		`apiserver_request_terminations_total{code="504",component="apiserver",group="",resource="pods",scope="cluster",` +
			`subresource="",verb="LIST",version="v1"} 1`,
		`apiserver_longrunning_requests{component="apiserver",group="",resource="namespaces",scope="cluster",` +
			`subresource="",verb="WATCH",version="v1"} 0`,
		`apiserver_watch_list_duration_seconds_count{group="",resource="namespaces",scope="cluster",version="v1"} 1`,
	} {
		if !slices.Contains(strings.Split(page, "\n"), line) {
			t.Errorf("%s is not in\n%s", line, page)
		}
	}
}

var (
	stockFamilies = regexp.MustCompile(
		`^(# (HELP|TYPE) )?(authentication_token_cache_|authorization_(attempts|duration)_|apiserver_admission_step_|` +
			`apiserver_request_(total|duration_seconds|sli_duration|terminations|body_size)|apiserver_longrunning_|` +
			`apiserver_requested_deprecated|apiserver_response_sizes|apiserver_current_inflight|` +
			`apiserver_watch_(events_(total|sizes)|list)|authenticat(ed_user|ion_attempts|ion_duration))`)
	sample    = regexp.MustCompile(`^([a-z_]+)\{(.*)\}`)
	anyLabel  = regexp.MustCompile(`(\w+)="[^"]*"`)
	stability = regexp.MustCompile(`^# HELP \w+ \[[A-Z]+\]`)
)

// shapes returns what of a page of metrics does not depend on what was counted.
func shapes(page string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch m := sample.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "# TYPE "):
			out[line] = true
		case strings.HasPrefix(line, "# HELP "):
			out[stability.FindString(line)] = true
		case m != nil:
			out[m[1]+" "+anyLabel.ReplaceAllStringFunc(m[2], func(label string) string {
				if name, _, _ := strings.Cut(label, "="); name != "le" && name != "quantile" {
					return name
				}
				return label
			})] = true
		}
	}
	return out
}
