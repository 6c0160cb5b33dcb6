package logs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/runtime"
)

const sample = `2026-01-02T03:04:01.000000001Z stdout F one
2026-01-02T03:04:02.5Z stderr F err
2026-01-02T03:04:03Z stdout P par
2026-01-02T03:04:04Z stderr F between
2026-01-02T03:04:05+00:00 stdout F:x tial
2026-01-02T03:04:06Z stdout F 
broken line
2026-01-02T03:04:07Z stdout F end
`

func sampleFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "0.log")
	if err := os.WriteFile(path, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func at(s string) time.Time { v, _ := time.Parse(time.RFC3339, s); return v }

func TestRead(t *testing.T) {
	t.Parallel()
	path := sampleFile(t)
	all := func() Options { return Options{Tail: -1, Limit: -1} }
	for name, tc := range map[string]struct {
		o        func(*Options)
		out, err string
	}{
		"all":             {func(*Options) {}, "one\npartial\n\nend\n", "err\nbetween\n"},
		"stdout":          {func(o *Options) { o.Stream = "stdout" }, "one\npartial\n\nend\n", ""},
		"tail":            {func(o *Options) { o.Tail = 4 }, "tial\n\nend\n", ""},
		"tail of nothing": {func(o *Options) { o.Tail = 0 }, "", ""},
		"long tail":       {func(o *Options) { o.Tail = 99 }, "one\npartial\n\nend\n", "err\nbetween\n"},
		"since":           {func(o *Options) { o.Since = at("2026-01-02T03:04:06Z") }, "\nend\n", ""},
		"limit":           {func(o *Options) { o.Limit = 6 }, "one\n", "er"},
		"timestamps": {func(o *Options) { o.Timestamps = true; o.Stream = "stdout" },
			"2026-01-02T03:04:01.000000001Z one\n2026-01-02T03:04:03.000000000Z partial\n2026-01-02T03:04:06.000000000Z \n2026-01-02T03:04:07.000000000Z end\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := all()
			tc.o(&o)
			var stdout, stderr bytes.Buffer
			if err := NewReaders().Read(context.Background(), path, o, nil, &stdout,
				&stderr); err != nil || stdout.String() != tc.out || stderr.String() != tc.err {
				t.Errorf("%q %q %v", stdout.String(), stderr.String(), err)
			}
		})
	}
	if err := NewReaders().Read(context.Background(), path+"x", all(), nil, nil,
		nil); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "failed to open log file") {
		t.Error(err)
	}
}

// growing appends a record to the log at each write of what is read of it, a hundred at most.
type growing struct {
	bytes.Buffer
	log *os.File
	n   int
}

func (g *growing) Write(p []byte) (int, error) {
	if g.n++; g.n <= 100 {
		if _, err := g.log.WriteString("2026-01-02T03:04:08Z stdout F more\n"); err != nil {
			return 0, err
		}
	}
	return g.Buffer.Write(p)
}

func TestReadEndsWhereTheLogEndedWhenItBegan(t *testing.T) {
	t.Parallel()
	for tail, want := range map[int64]string{1: "end\n", -1: "one\npartial\n\nend\n"} {
		path := sampleFile(t)
		log, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		out := &growing{log: log}
		if err := NewReaders().Read(context.Background(), path, Options{Tail: tail, Limit: -1, Stream: "stdout"}, nil,
			out, out); err != nil || out.String() != want {
			t.Errorf("tail %d: %q %v, want %q", tail, out.String(), err, want)
		}
	}
}

func TestOptionsOf(t *testing.T) {
	t.Parallel()
	n, s := int64(5), corev1.LogStreamStderr
	now := time.Unix(100, 0)
	o := OptionsOf(&corev1.PodLogOptions{Follow: true, Timestamps: true, SinceSeconds: &n, TailLines: &n,
		LimitBytes: &n, Stream: &s}, now)
	if o != (Options{Follow: true, Timestamps: true, Since: time.Unix(95, 0), Tail: 5, Limit: 5, Stream: "stderr"}) {
		t.Errorf("%+v", o)
	}
	ever := int64(math.MaxInt64)
	if o := OptionsOf(&corev1.PodLogOptions{SinceSeconds: &ever}, now); !o.Since.Before(now) {
		t.Errorf("since for ever: %s", o.Since)
	}
	st := metav1.NewTime(now)
	if o := OptionsOf(&corev1.PodLogOptions{SinceTime: &st},
		time.Now()); o.Tail != -1 || o.Limit != -1 || !o.Since.Equal(now) {
		t.Errorf("%+v", o)
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}
func (s *safeBuffer) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.After(10 * time.Second); !ok(); {
		select {
		case <-deadline:
			t.Fatal("not in 10 s: " + what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// TestFollowAcrossRotation writes a thousand records while the file is rotated several times: the follower sees each
// once.
func TestFollowAcrossRotation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "0.log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var running atomic.Bool
	running.Store(true)
	var out safeBuffer
	done := make(chan error)
	go func() {
		done <- NewReaders().Read(context.Background(), path, Options{Tail: -1, Limit: -1, Follow: true},
			func(context.Context) (bool, error) {
				return running.Load(), nil
			}, &out, io.Discard)
	}()
	var want strings.Builder
	for i := range 1000 {
		record := fmt.Sprintf("2026-01-02T03:04:01Z stdout F %d\n", i)
		fmt.Fprintln(&want, i)
		if _, err := f.WriteString(record[:5]); err != nil { // half a record is not shown
			t.Fatal(err)
		}
		if _, err := f.WriteString(record[5:]); err != nil {
			t.Fatal(err)
		}
		if i%300 == 299 {
			// A reader that lags two rotations behind loses what is between, as with every log reader: let it come.
			await(t, "the follower catches up", func() bool { return out.String() == want.String() })
			if err := os.Rename(path, path+".old"); err != nil {
				t.Fatal(err)
			}
			f.Close()
			if f, err = os.Create(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	running.Store(false)
	if err := <-done; err != nil || out.String() != want.String() {
		t.Fatal(err, len(out.String()), want.Len())
	}
	f.Close()
}

// The question whether a container runs costs lists of the runtime: output must not multiply it.
func TestFollowAsksTheRuntimeOnlyWhenNothingComes(t *testing.T) {
	t.Parallel()
	path := sampleFile(t)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var asked atomic.Int64
	var dead atomic.Bool
	var out safeBuffer
	begun := time.Now()
	done := make(chan error, 1)
	go func() {
		done <- NewReaders().Read(t.Context(), path, Options{Follow: true, Tail: 0, Limit: -1},
			func(context.Context) (bool, error) {
				asked.Add(1)
				return !dead.Load(), nil
			}, &out, io.Discard)
	}()
	await(t, "the first question", func() bool { return asked.Load() > 0 })
	for i := range 200 {
		fmt.Fprintf(f, "2026-01-02T03:04:08Z stdout F line-%d\n", i)
		await(t, "the line", func() bool { return strings.HasSuffix(out.String(), fmt.Sprintf("line-%d\n", i)) })
	}
	if n, most := asked.Load(), 1+int64(time.Since(begun)/followWait); n > most {
		t.Errorf("asked %d times, at most %d are due", n, most)
	}
	fmt.Fprintln(f, "2026-01-02T03:04:09Z stdout F last")
	dead.Store(true)
	if err := <-done; err != nil || !strings.HasSuffix(out.String(), "last\n") {
		t.Error("the last words are missing", err)
	}
}

func TestFollowEndsWithItsReader(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	path := sampleFile(t)
	done := make(chan error)
	var out safeBuffer
	go func() {
		done <- NewReaders().Read(ctx, path, Options{Tail: 1, Limit: -1, Follow: true},
			func(context.Context) (bool, error) { return true, nil }, &out, io.Discard)
	}()
	await(t, "the tail", func() bool { return out.String() == "end\n" })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

type reopener struct {
	ids  []string
	err  error
	path string
}

func (r *reopener) ReopenContainerLog(_ context.Context, id string) error {
	r.ids = append(r.ids, id)
	if r.err != nil {
		return r.err
	}
	return os.WriteFile(r.path, nil, 0o600)
}

// rotated is a pod of which one container has ended and one runs.
func rotated() *runtime.PodStatus {
	return &runtime.PodStatus{UID: "u", Name: "p", Namespace: "ns", Containers: []runtime.Container{
		{ID: runtime.ContainerID{ID: "c1"}, Name: "c", Attempt: 1, State: runtime.StateRunning},
		{ID: runtime.ContainerID{ID: "c0"}, Name: "c", State: runtime.StateExited}}}
}

func (*reopener) Pods(context.Context) ([]*runtime.PodStatus, error) {
	return []*runtime.PodStatus{rotated()}, nil
}

func TestRotate(t *testing.T) {
	t.Parallel()
	path := sampleFile(t)
	now := at("2026-01-02T03:04:05Z")
	rt := &reopener{path: path}
	r := &Rotator{MaxSize: 100, MaxFiles: 3, Runtime: rt, Now: func() time.Time {
		return now
	}, Log: slog.New(slog.DiscardHandler)}
	f := logFile{containerID: "c1", path: path}
	if err := os.WriteFile(path+".x.tmp", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	names := func() string {
		list, _ := filepath.Glob(path + "*")
		for i := range list {
			list[i] = filepath.Base(list[i])
		}
		return strings.Join(list, " ")
	}
	for _, want := range []string{
		"0.log 0.log.20260102-030405",
		"0.log 0.log.20260102-030405.gz 0.log.20260102-030406",
		"0.log 0.log.20260102-030406.gz 0.log.20260102-030407",
	} {
		if err := r.rotate(context.Background(), f); err != nil || names() != want {
			t.Fatalf("%v: %s, want %s", err, names(), want)
		}
		if err := r.rotate(context.Background(), f); err != nil || names() != want {
			t.Fatal("a small file was rotated", err)
		}
		if err := os.WriteFile(path, []byte(sample), 0o600); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	z, err := os.Open(path + ".20260102-030406.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	g, err := gzip.NewReader(z)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(g); err != nil || string(data) != sample {
		t.Error("compressed:", len(data), err)
	}
	rt.err = errors.New("runtime gone")
	before := names()
	if err := r.rotate(context.Background(), f); !errors.Is(err, rt.err) {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != int64(len(sample)) {
		t.Error("the log was not put back:", before, names())
	}
	rt.err = nil
	for _, p := range strings.Fields(names()) {
		if err := os.Remove(filepath.Join(filepath.Dir(path), p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.rotate(context.Background(), f); err != nil || names() != "0.log" {
		t.Error("a missing log must be reopened:", err, names())
	}
	if err := (&Rotator{MaxFiles: 1}).Run(context.Background()); err == nil {
		t.Error("one file only was accepted")
	}
}

func TestRotatorRuns(t *testing.T) {
	t.Parallel()
	files := Files{Pods: t.TempDir()}
	path := files.Path(rotated(), &rotated().Containers[0])
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
		os.WriteFile(path, []byte(sample), 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	rt := &reopener{path: path}
	r := &Rotator{MaxSize: 100, MaxFiles: 2, Interval: time.Millisecond, Runtime: rt, Now: time.Now,
		Log:   slog.New(slog.DiscardHandler),
		Files: files}
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	await(t, "the rotation", func() bool { list, _ := filepath.Glob(path + ".*"); return len(list) == 1 })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if ended := files.Path(rotated(),
		&rotated().Containers[1]); !strings.HasSuffix(ended, "/ns_p_u/c/0.log") ||
		!strings.HasSuffix(path, "/ns_p_u/c/1.log") {
		t.Error("paths:", ended, path)
	}
	if rt.ids[0] != "c1" {
		t.Error("rotated:", rt.ids)
	}
}

func FuzzParse(f *testing.F) {
	for line := range strings.Lines(sample) {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		before := bytes.Clone(record)
		l, err := parse(record)
		if !bytes.Equal(before, record) {
			t.Fatal("the record was changed")
		}
		if err != nil {
			return
		}
		if l.stream != "stdout" && l.stream != "stderr" ||
			l.partial == bytes.HasSuffix(l.content, []byte("\n")) &&
				!bytes.Contains(record[:len(record)-min(1, len(record))], []byte("\n")) {
			t.Fatalf("%q gives %+v", record, l)
		}
		if len(l.content) > len(record) {
			t.Fatal("content longer than the record")
		}
	})
}
