package apiserver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/flowcontrol"
	"bonsai/api/resources"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/fairness"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage/follow"
)

// fairly lets a server of that many seats give turns by the FlowSchemas and PriorityLevelConfigurations that it stores.
func fairly(t *testing.T, seats int) func(*assemble.Config) {
	return func(c *assemble.Config) {
		of := func(resource string) follow.Resource {
			i := slices.IndexFunc(c.Rows, func(r resources.Row) bool { return r.Resource == resource })
			codec := registry.NewCodec(&c.Rows[i])
			return follow.Resource{Source: c.Storage, Prefix: registry.Prefix(&c.Rows[i]),
				Decode: func(value []byte) (runtime.Object, error) {
					return codec.Decode(value, 0)
				}}
		}
		turns, err := fairness.New(
			fairness.Config{Seats: seats, RequestTimeout: time.Minute, Schemas: of("flowschemas"),
				Levels: of("prioritylevelconfigurations"),
				Store:  c.Catalog.Late(schema.GroupResource{Group: flowcontrolv1.GroupName, Resource: "flowschemas"}),
				Log:    slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		c.Parts.Fairness, c.Parts.Runs = turns, append(c.Parts.Runs, turns.Run)
	}
}

const (
	levels  = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
	schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
)

// create posts an object, and fails the test if it is refused. It returns its UID.
func create(t *testing.T, url, body string) string {
	t.Helper()
	code, _, answer := call(t, "POST", url, body, "Content-Type", "application/json")
	var made struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal([]byte(answer), &made); code != http.StatusCreated || err != nil {
		t.Fatalf("%d %s", code, answer)
	}
	return made.Metadata.UID
}

// schemaOf sends all that admin does with some configmaps to a level.
func schemaOf(name, level string, precedence int, namespaces string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"priorityLevelConfiguration":{"name":%q},"matchingPrecedence":%d,"distinguisherMethod":{"type":"ByUser"},"rules":[
		{"subjects":[{"kind":"User","user":{"name":"admin"}},{"kind":"User","user":{"name":"eve"}}],"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["configmaps"],"namespaces":[%s]}]}]}}`, name, level, precedence, namespaces)
}

// until asks again until ok, or fails the test with what was seen last.
func until(t *testing.T, ok func() (bool, string)) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		done, seen := ok()
		if done {
			return
		}
		if time.Now().After(end) {
			t.Fatal(seen)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// Requests go where the stored objects say, from soon after they are stored, and are told so. Those of a level without
// seats wait until it gets some, or until its deletion sends later ones elsewhere.
func TestFairness(t *testing.T) {
	t.Parallel()
	host := start(t, fairly(t, 100))
	dangling := func(name string) string {
		_, _, body := call(t, "GET", host+schemas+"/"+name, "")
		var f flowcontrolv1.FlowSchema
		if err := json.Unmarshal([]byte(body), &f); err != nil {
			t.Fatal(err)
		}
		if c := flowcontrol.Dangling(&f.Status); c != nil {
			return string(c.Status) + " " + c.Reason + " " + c.Message
		}
		return ""
	}
	uid := create(t, host+schemas, schemaOf("jailed", "jail", 10, `"jail"`))
	until(t, func() (bool, string) {
		got := dangling("jailed")
		return got == `True NotFound This FlowSchema references the PriorityLevelConfiguration object named "jail" but there is no such object`, got
	})
	level := create(t, host+levels,
		`{"metadata":{"name":"jail"},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":0,"borrowingLimitPercent":0,
		"limitResponse":{"type":"Queue","queuing":{"queues":1,"handSize":1,"queueLengthLimit":2}}}}}`)
	until(t, func() (bool, string) {
		got := dangling("jailed")
		return got == `False Found This FlowSchema references the PriorityLevelConfiguration object named "jail" and it exists`, got
	})
	const jailed = "/api/v1/namespaces/jail/configmaps"
	wait := func() *bufio.Reader {
		c := dial(t, host, "GET "+jailed+"?timeout=59s HTTP/1.1\r\nHost: x\r\nTest-User: admin\r\n\r\n")
		return bufio.NewReader(c)
	}
	waiting := []*bufio.Reader{wait(), wait()}
	dump := func(what string) string {
		code, _, body := call(t, "GET", host+"/debug/api_priority_and_fairness/"+what, "")
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, "jail,") {
				return strings.Join(strings.Fields(line), " ")
			}
		}
		return body
	}
	until(t, func() (bool, string) {
		got := dump("dump_priority_levels")
		return got == "jail, 1, false, false, 2, 0, 0, 0, 0, 0", got
	})
	if got := dump("dump_queues"); got != "jail, 0, 2, 0, 0, 0.00000000ss, 2, 2, 0.00600000ss" {
		t.Errorf("queues: %s", got)
	}
	if got := dump("dump_requests?includeRequestDetails=1"); !strings.HasPrefix(got, "jail, jailed, 0, 0, admin, 2") ||
		!strings.HasSuffix(got, "1, 0, 0s, 0001-01-01T00:00:00Z, admin, list, "+jailed+", jail, , v1, configmaps,") {
		t.Errorf("requests: %s", got)
	}
	code, header, body := call(t, "GET", host+jailed, "")
	if code != http.StatusTooManyRequests || header.Get("Retry-After") != "1" ||
		body != "Too many requests, please try again later.\n" ||
		header.Get("X-Kubernetes-PF-FlowSchema-UID") != uid ||
		header.Get("X-Kubernetes-PF-PriorityLevel-UID") != level {
		t.Errorf("a request too many: %d %v %q", code, header, body)
	}
	// Who may not is told where the request would have waited, and waits for nothing.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, host+jailed, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := plain("eve").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close() //nolint:errcheck // the header counts
	if h := answer.Header; answer.StatusCode != http.StatusForbidden ||
		h.Get("X-Kubernetes-PF-FlowSchema-UID") != uid || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("forbidden: %d %v", answer.StatusCode, h)
	}
	// A level that is deleted while requests wait lets them go as it can; the next request goes elsewhere.
	if code, _, body := call(t, "DELETE", host+levels+"/jail", ""); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	until(t, func() (bool, string) {
		code, header, body := call(t, "GET", host+jailed, "")
		return code == http.StatusOK && header.Get("X-Kubernetes-PF-PriorityLevel-UID") != level, fmt.Sprint(code, body)
	})
	if got := dump("dump_priority_levels"); got != "jail, 1, false, true, 2, 0, 0, 1, 0, 0" {
		t.Errorf("a level that was deleted: %s", got)
	}
	// It comes back with seats, and those who waited have their turn.
	create(t, host+levels, `{"metadata":{"name":"jail"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}}`)
	for _, r := range waiting {
		if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
			t.Errorf("who waited was answered %q, %v", line, err)
		}
	}
	if _, _, body := call(t, "GET", host+"/metrics",
		""); !strings.Contains(body,
		`apiserver_flowcontrol_dispatched_requests_total{flow_schema="jailed",priority_level="jail"}`) {
		t.Error("the metrics do not count the level's requests")
	}
}

// A watch has its turn while it begins, and none afterwards.
func TestWatchesHoldNoTurn(t *testing.T) {
	t.Parallel()
	host := start(t, fairly(t, 2))
	for range 20 {
		c := dial(t, host, "GET "+maps+"?watch=true HTTP/1.1\r\nHost: x\r\nTest-User: admin\r\n\r\n")
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
			t.Fatalf("%q %v", line, err)
		}
	}
	if code, _, body := call(t, "GET", host+maps, ""); code != http.StatusOK {
		t.Errorf("a read beside watches: %d %s", code, body)
	}
}

// With a thousand FlowSchemas requests are still classified, by the first that matches.
func TestThousandSchemas(t *testing.T) {
	t.Parallel()
	host := start(t, fairly(t, 100))
	for i := range 1000 {
		create(t, host+schemas, schemaOf(fmt.Sprintf("s%d", i), "catch-all", 100+i,
			fmt.Sprintf("%q", fmt.Sprintf("n%d", i))))
	}
	want := create(t, host+schemas, schemaOf("first", "catch-all", 50, `"n999"`))
	until(t, func() (bool, string) {
		_, header, body := call(t, "GET", host+"/api/v1/namespaces/n999/configmaps", "")
		return header.Get("X-Kubernetes-PF-FlowSchema-UID") == want, body
	})
}
