package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// collector is a writer that keeps the sizes of batches, or fails.
type collector struct {
	mu      sync.Mutex
	batches [][]*auditv1.Event
	err     error
}

func (c *collector) write(_ context.Context, events []*auditv1.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batches = append(c.batches, slices.Clone(events))
	return c.err
}

func (c *collector) sizes() (out []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.batches {
		out = append(out, len(b))
	}
	return out
}

func event(object string) *auditv1.Event {
	return &auditv1.Event{ResponseObject: &runtime.Unknown{Raw: []byte(object), ContentType: runtime.ContentTypeJSON}}
}

// A batch is written when it is full or old enough, and what is left at the end.
func TestBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to := &collector{}
		q := newQueue("x", BatchOptions{BufferSize: 10, MaxSize: 3, MaxWait: time.Minute}, to, func(n int, err error) {
			t.Errorf("%d are lost: %v", n, err)
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); q.Run(ctx) }()
		for range 4 {
			if err := q.Process(event("{}")); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if got := to.sizes(); !slices.Equal(got, []int{3}) {
			t.Errorf("at first: %v", got)
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if got := to.sizes(); !slices.Equal(got, []int{3, 1}) {
			t.Errorf("after the wait: %v", got)
		}
		if err := q.Process(event("{}")); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		stop()
		<-done
		if got := to.sizes(); !slices.Equal(got, []int{3, 1, 1}) || q.bytes.Load() != 0 {
			t.Errorf("at the end: %v, %d bytes", got, q.bytes.Load())
		}
	})
}

// A queue has bounds: so many events, and so many bytes of objects. What has no place is told.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	q := newQueue("x", BatchOptions{BufferSize: 2, MaxSize: 1}, &collector{}, nil)
	for i := range 3 {
		if err := q.Process(event("{}")); (err != nil) != (i == 2) || i == 2 && !errors.Is(err, errFull) {
			t.Errorf("event %d: %v", i, err)
		}
	}
	q = newQueue("x", BatchOptions{BufferSize: 1000, MaxSize: 1}, &collector{}, nil)
	large := `"` + strings.Repeat("x", maxQueued/4) + `"`
	for i := range 5 {
		if err := q.Process(event(large)); (err != nil) != (i >= 3) {
			t.Errorf("large event %d: %v", i, err)
		}
	}
}

// Batches that are not written are told, and do not stop the queue; throttled ones wait.
func TestThrottle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to, lost := &collector{err: io.ErrClosedPipe}, 0
		q := newQueue("x", BatchOptions{BufferSize: 10, MaxSize: 1, Throttle: true, QPS: 1, Burst: 2}, to,
			func(n int, _ error) {
				lost += n
			})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); q.Run(ctx) }()
		for range 4 {
			if err := q.Process(event("{}")); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if n := len(to.sizes()); n != 2 {
			t.Errorf("%d batches at once", n)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		stop()
		<-done
		if n := len(to.sizes()); n != 4 || lost != 4 {
			t.Errorf("%d batches, %d lost", n, lost)
		}
	})
}

// Of an event that is too large its objects are left out; if that does not help, the event; and batches are split.
func TestTruncate(t *testing.T) {
	t.Parallel()
	to, lost := &collector{}, 0
	tr := &truncating{TruncateOptions{Enabled: true, MaxEventSize: 1000, MaxBatchSize: 1500}, to, func(n int, _ error) {
		lost += n
	}}
	large, huge := event(`"`+strings.Repeat("x", 2000)+`"`), &auditv1.Event{UserAgent: strings.Repeat("u", 2000)}
	if err := tr.write(t.Context(),
		[]*auditv1.Event{large, huge, event(`"` + strings.Repeat("x", 600) + `"`),
			event(`"` + strings.Repeat("x", 600) + `"`)}); err != nil {
		t.Fatal(err)
	}
	if lost != 1 || !slices.Equal(to.sizes(), []int{2, 1}) {
		t.Errorf("%d lost, batches %v", lost, to.sizes())
	}
	if e := to.batches[0][0]; e.ResponseObject != nil || e.Annotations["audit.k8s.io/truncated"] != "true" ||
		large.Annotations != nil {
		t.Errorf("%+v", e)
	}
}

// The line is that of a real kube-apiserver v1.36.3.
func TestLegacy(t *testing.T) {
	t.Parallel()
	e := &auditv1.Event{AuditID: "e09a63b6", Stage: auditv1.StageResponseComplete, SourceIPs: []string{"127.0.0.1"},
		Verb: "get", UserAgent: "my agent",
		User: authenticationv1.UserInfo{Username: "admin",
			Groups: []string{"system:masters", "system:authenticated"}},
		ImpersonatedUser: &authenticationv1.UserInfo{Username: "bob", Groups: []string{`g"q`, "system:authenticated"}},
		ObjectRef:        &auditv1.ObjectReference{Namespace: "a"}, RequestURI: "/api/v1/namespaces/a/configmaps/a/x",
		ResponseStatus:           &metav1.Status{Code: 403},
		RequestReceivedTimestamp: metav1.NewMicroTime(time.Date(2026, 11, 22, 16, 36, 0, 402664164, time.UTC))}
	want := `2026-11-22T16:36:00.402664164Z AUDIT: id="e09a63b6" stage="ResponseComplete" ip="127.0.0.1" method="get" user="admin" groups="\"system:masters\",\"system:authenticated\"" as="bob" asgroups="\"g\\\"q\",\"system:authenticated\"" user-agent="my agent" namespace="a" uri="/api/v1/namespaces/a/configmaps/a/x" response="403"`
	if got := legacyLine(e); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	stranger := &auditv1.Event{AuditID: "7e644587", Stage: auditv1.StageResponseStarted,
		SourceIPs: []string{"127.0.0.1"}, Verb: "get", UserAgent: "curl/7.88.1", RequestURI: "/version"}
	if got := legacyLine(stranger); !strings.HasSuffix(got,
		`user="<none>" groups="<none>" as="<self>" asgroups="<lookup>" user-agent="curl/7.88.1" namespace="<none>" uri="/version" response="<deferred>"`) {
		t.Error(got)
	}
}

// A file is rotated, and only so many old ones are kept.
func TestRotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Log(t.Context(),
		&LogOptions{Options: Options{Mode: Blocking}, Path: filepath.Join(dir, "deep", "audit.log"), Format: JSON,
			MaxSize: 1, MaxBackups: 1}, io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if err := s.Process(event(`"` + strings.Repeat("x", 700<<10) + `"`)); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		files, err := os.ReadDir(filepath.Join(dir, "deep"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v", files)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "deep", "audit.log")); err != nil || info.Mode().Perm() != 0o600 ||
		info.Size() > 1<<20 {
		t.Errorf("%v, %v", info, err)
	}
	var out bytes.Buffer
	if s, err = Log(t.Context(), &LogOptions{Options: Options{Mode: Blocking}, Path: "-", Format: JSON}, &out,
		nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Process(event(`{"kind":"X"}`)); err != nil ||
		!strings.Contains(out.String(), `"responseObject":{"kind":"X"}`) || !strings.HasSuffix(out.String(), "}\n") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// fullDisk takes space bytes more, if full.
type fullDisk struct {
	bytes.Buffer
	full  bool
	space int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	if !d.full || d.space >= len(p) {
		d.space -= len(p)
		return d.Buffer.Write(p)
	}
	n, _ := d.Buffer.Write(p[:d.space])
	d.space = 0
	return n, syscall.ENOSPC
}

// A full disk loses events and says so; the file goes on when there is space again, with whole lines. So it does after
// a server that was killed within a line.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, format := range []string{JSON, Legacy} {
		for _, space := range []int{0, 1, 20} {
			disk := &fullDisk{full: true, space: space}
			o := &LogOptions{Options: Options{Mode: Blocking}, Path: "-", Format: format}
			s, err := Log(t.Context(), o, disk, nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := s.Process(event("{}")); !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("%s, space %d: %v", format, space, err)
				}
			}
			disk.full = false
			for range 2 {
				if err := s.Process(event("{}")); err != nil {
					t.Error(err)
				}
			}
			all := strings.Split(strings.TrimSuffix(disk.String(), "\n"), "\n")
			if len(all) != 2+min(space, 1) || all[len(all)-1] != all[len(all)-2] {
				t.Errorf("%s, space %d: %q", format, space, all)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(`{"kind":"Ev`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Log(t.Context(), &LogOptions{Options: Options{Mode: Blocking}, Path: path, Format: JSON}, io.Discard, nil)
	if err == nil {
		err = s.Process(event("{}"))
	}
	if text, _ := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "{\"kind\":\"Ev\n{") {
		t.Errorf("after a kill: %q, %v", text, err)
	}
}

// A webhook gets EventLists; what it does not take for a reason that may pass is sent again, what it refuses is lost.
func TestWebhook(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var lists []auditv1.EventList
	answers := []int{500, 429, 200, 400, 200}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var l auditv1.EventList
		if err := json.NewDecoder(r.Body).Decode(&l); err != nil {
			t.Error(err)
		}
		if r.Header.Get("Authorization") != "Bearer abc" || r.URL.Path != "/audit" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		lists = append(lists, l)
		w.WriteHeader(answers[0])
		answers = answers[1:]
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"%s/audit","insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":{"token":"abc"}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var dialed atomic.Int32
	s, err := Webhook(t.Context(),
		&WebhookOptions{Options: Options{Mode: Blocking}, ConfigFile: file, InitialBackoff: time.Millisecond,
			Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				dialed.Add(1)
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Process(&auditv1.Event{TypeMeta: metav1.TypeMeta{Kind: "Event"}, AuditID: "1"}); err != nil {
		t.Error(err)
	}
	if err := s.Process(&auditv1.Event{AuditID: "2"}); err == nil || !strings.Contains(err.Error(), "400 Bad Request") {
		t.Error(err)
	}
	if len(lists) != 4 || lists[2].Kind != "EventList" || lists[2].APIVersion != "audit.k8s.io/v1" ||
		lists[2].Items[0].AuditID != "1" || lists[2].Items[0].Kind != "" {
		t.Errorf("%+v", lists)
	}
	if _, err := Webhook(t.Context(), &WebhookOptions{ConfigFile: filepath.Join(t.TempDir(), "none")},
		nil); err == nil || !strings.Contains(err.Error(), "initializing audit webhook: ") {
		t.Error(err)
	}
	if dialed.Load() == 0 {
		t.Error("the connection was opened in another way than Dial")
	}
}

// The messages are those of a real kube-apiserver v1.36.3.
func TestValidate(t *testing.T) {
	t.Parallel()
	good := LogOptions{Options: Options{Mode: Blocking}, Path: "-", Format: JSON}
	for want, change := range map[string]func(*LogOptions){
		`invalid audit log mode foo, allowed modes are "batch,blocking,blocking-strict"`: func(o *LogOptions) {
			o.Mode = "foo"
		},
		`invalid audit log format xml, allowed formats are "legacy,json"`: func(o *LogOptions) {
			o.Format = "xml"
		},
		`--audit-log-maxage -1 can't be a negative number`: func(o *LogOptions) {
			o.MaxAge = -1
		},
		`--audit-log-maxbackup -1 can't be a negative number`: func(o *LogOptions) {
			o.MaxBackups = -1
		},
		`--audit-log-maxsize -1 can't be a negative number`: func(o *LogOptions) {
			o.MaxSize = -1
		},
		`invalid audit batch log buffer size 0, must be a positive number`: func(o *LogOptions) {
			o.Mode, o.Batch.MaxSize = Batch, 1
		},
		`invalid audit truncate log max event size 0, must be a positive number`: func(o *LogOptions) {
			o.Truncate.Enabled = true
		},
		`invalid audit truncate log max batch size 5, must be greater than max event size (10)`: func(o *LogOptions) {
			o.Truncate = TruncateOptions{true, 10, 5}
		},
	} {
		o := good
		change(&o)
		if err := o.Validate(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}
