package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLogOptions(t *testing.T) {
	t.Parallel()
	q, _ := url.ParseQuery("follow=true&timestamps=1&previous=False&tailLines=0&sinceSeconds=5&limitBytes=9&sinceTime=2026-01-02T03:04:05Z&stream=Stderr")
	o, err := logOptions(q)
	if err != nil || !o.Follow || !o.Timestamps || o.Previous || *o.TailLines != 0 || *o.SinceSeconds != 5 ||
		*o.LimitBytes != 9 || o.SinceTime.Year() != 2026 || *o.Stream != "Stderr" {
		t.Errorf("%+v %v", o, err)
	}
	for _, bad := range []string{"sinceSeconds=0", "limitBytes=0", "tailLines=x", "sinceTime=yesterday", "stream=x"} {
		q, _ := url.ParseQuery(bad)
		if _, err := logOptions(q); err == nil {
			t.Error(bad, "accepted")
		}
	}
}

// timed notes until when the answer must be written.
type timed struct {
	*httptest.ResponseRecorder
	until []time.Time
}

func (w *timed) SetWriteDeadline(t time.Time) error { w.until = append(w.until, t); return nil }

// A log is as long as it is: no time is set for all of it.
func TestLongLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "long.log"), []byte("line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	if err := (&Server{cfg: Config{LogDir: dir}}).debugging(mux); err != nil {
		t.Fatal(err)
	}
	w := &timed{ResponseRecorder: httptest.NewRecorder()}
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/logs/long.log", nil))
	if w.Code != http.StatusOK || w.Body.String() != "line\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if len(w.until) == 0 || !w.until[0].IsZero() {
		t.Errorf("it must be written until %v", w.until)
	}
}

// A pod with a host path may make a pipe among the logs: it is refused at once.
func TestLogsOpenNoPipes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "pipe.log"), 0o600); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	if err := (&Server{cfg: Config{LogDir: dir}}).debugging(mux); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/logs/pipe.log": http.StatusForbidden, "/logs/": http.StatusOK,
		"/logs/none": http.StatusNotFound} {
		w := &timed{ResponseRecorder: httptest.NewRecorder()}
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d: %s", path, w.Code, want, w.Body)
		}
	}
}
