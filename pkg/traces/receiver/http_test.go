package receiver

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"

	"bonsai/pkg/traces"
)

// web serves a receiver's messages by HTTP. The header "From" says who sends: a node, "-" for the control plane, and
// nothing for a stranger.
func web(t *testing.T, r *Receiver) (send func(from string, change func(*http.Request), body []byte) *http.Response) {
	t.Helper()
	r.Nodes, r.Log = NewNodes(), slog.New(slog.DiscardHandler)
	server := httptest.NewServer(r.HTTP(func(q *http.Request) (string, bool) {
		from := q.Header.Get("From")
		return strings.TrimPrefix(from, "-"), from != ""
	}))
	t.Cleanup(server.Close)
	return func(from string, change func(*http.Request), body []byte) *http.Response {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("From", from)
		q.Header.Set("Content-Type", traces.MediaType)
		if change != nil {
			change(q)
		}
		resp, err := server.Client().Do(q)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
}

func encoded(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestHTTP: spans of nodes and control planes are taken as by a socket, those of others and other things are not.
func TestHTTP(t *testing.T) {
	t.Parallel()
	k := &kept{}
	r := &Receiver{Keep: k.keep}
	send := web(t, r)
	span := encoded(t, of(podSpan()))
	ofPlane := of(podSpan())
	ofPlane.ResourceSpans[0].ScopeSpans[0].Spans[0].Name = "apiserver.create"
	set := func(key, value string) func(*http.Request) {
		return func(q *http.Request) { q.Header.Set(key, value) }
	}
	for name, c := range map[string]struct {
		from   string
		change func(*http.Request)
		body   []byte
		code   int
		kept   string // who sent the span that is kept, "" for none
	}{
		"of a node":          {"n7", nil, span, 200, "n7"},
		"of a control plane": {"-", nil, span, 200, "-"},
		"of a stranger":      {"", nil, span, 403, ""},
		"a node as another":  {"n7", nil, encoded(t, ofPlane), 200, ""},
		"a control plane's":  {"-", nil, encoded(t, ofPlane), 200, "-"},
		"another method":     {"n7", func(q *http.Request) { q.Method = http.MethodPut }, span, 405, ""},
		"JSON":               {"n7", set("Content-Type", "application/json"), []byte("{}"), 415, ""},
		"packed":             {"n7", set("Content-Encoding", "gzip"), span, 415, ""},
		"nonsense":           {"n7", nil, []byte("nonsense"), 400, ""},
		"too large":          {"n7", nil, make([]byte, MaxMessage+1), 413, ""},
	} {
		k.spans = nil
		resp := send(c.from, c.change, c.body)
		answer, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != c.code {
			t.Errorf("%s: %s %s, %v", name, resp.Status, answer, err)
		}
		if (c.kept != "") != (len(k.spans) == 1) {
			t.Errorf("%s: %d spans are kept", name, len(k.spans))
			continue
		}
		if node := strings.TrimPrefix(c.kept, "-"); c.kept != "" && k.spans[0].Sender != node {
			t.Errorf("%s: the span is of %q", name, k.spans[0].Sender)
		}
		var said collector.ExportTraceServiceResponse
		if c.code == 200 && (proto.Unmarshal(answer, &said) != nil ||
			(said.GetPartialSuccess().GetRejectedSpans() == 0) != (c.kept != "")) {
			t.Errorf("%s: the answer is %v", name, &said)
		}
	}
	if s := r.Stats(); s.Dropped[traces.Foreign] != 1 || s.Broken != 2 {
		t.Errorf("%+v", s)
	}
}

// TestHTTPBounds: a node that sends too much, or too many messages at once, gets a time to try again after, and others
// are served.
func TestHTTPBounds(t *testing.T) {
	t.Parallel()
	r := &Receiver{Keep: (&kept{}).keep, timeout: time.Hour}
	send := web(t, r)
	large := podSpan()
	large.Name = strings.Repeat("x", MaxMessage/2)
	much := encoded(t, of(large))
	resp := send("n1", nil, much)
	for n := 0; resp.StatusCode == 200 && n < 100; n++ {
		resp = send("n1", nil, much)
	}
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || r.Stats().Throttled != 1 {
		t.Errorf("%s, %v", resp.Status, resp.Header)
	}
	if other := send("n2", nil, encoded(t, of(podSpan()))); other.StatusCode != 200 {
		t.Errorf("another node: %s", other.Status)
	}
	// Messages that do not end hold the places of their node alone.
	ctx, end := context.WithCancel(t.Context())
	for range nodeRequests {
		body, more := io.Pipe()
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, resp.Request.URL.String(), body)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("From", "n3")
		q.Header.Set("Content-Type", traces.MediaType)
		go func() {
			if resp, err := http.DefaultClient.Do(q); err == nil {
				resp.Body.Close()
			}
		}()
		t.Cleanup(func() { more.Close() })
	}
	until(t, "the places are taken", func() bool { return r.requests.Load() == nodeRequests })
	small := encoded(t, of(podSpan()))
	if resp := send("n3", nil, small); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("a third message: %s", resp.Status)
	}
	if resp := send("n4", nil, small); resp.StatusCode != 200 {
		t.Errorf("a message of another node: %s", resp.Status)
	}
	end()
	until(t, "the places are free", func() bool { return r.requests.Load() == 0 })
	http.DefaultClient.CloseIdleConnections()
}

// TestManyNodes: how much is remembered of nodes is bounded, and a node that is one too many waits.
func TestManyNodes(t *testing.T) {
	t.Parallel()
	n := NewNodes()
	name := func(i int) string { return strings.Repeat("n", i+1) }
	for i := range maxNodes {
		if wait := n.wait(name(i), nodeBurst); wait > 0 {
			t.Fatal(i, wait)
		}
	}
	if wait := n.wait("late", 1); wait == 0 || n.enter("late") || len(n.of) > maxNodes {
		t.Errorf("one too many waits %v; there are %d", wait, len(n.of))
	}
	if !n.enter(name(0)) {
		t.Error("a node that is known cannot send")
	}
	for _, s := range n.of {
		s.limit = rate.NewLimiter(nodeRate, nodeBurst) // as after some time
	}
	if wait := n.wait("late", 1); wait > 0 || len(n.of) != 2 || n.of[name(0)].messages != 1 {
		t.Errorf("later it waits %v; there are %d", wait, len(n.of))
	}
}
