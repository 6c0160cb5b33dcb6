package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is kubectl itself for the tests that start it.
func TestMain(m *testing.M) {
	if os.Getenv("KUBECTL_UNDER_TEST") != "" {
		main()
	}
	os.Exit(m.Run())
}

// server has one pod, whose watch and log never end.
func server(t *testing.T) string {
	t.Helper()
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","resourceVersion":"1"},"spec":{"containers":[{"name":"c"}]}}`
	answers := map[string]string{
		"/api":                                  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":                                 `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v1":                               `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list","watch"]}]}`,
		"/api/v1/namespaces/default/pods":       `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` + pod + `]}`,
		"/api/v1/namespaces/default/pods/p":     pod,
		"/api/v1/namespaces/default/pods/p/log": "a line\n",
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.Path]
		endless := r.URL.Query().Get("watch") != "" || strings.HasSuffix(r.URL.Path, "/log")
		switch {
		case !ok:
			http.NotFound(w, r)
		case r.URL.Query().Get("watch") != "":
			io.WriteString(w, `{"type":"MODIFIED","object":`+pod+"}\n")
		default:
			io.WriteString(w, answer)
		}
		if endless {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestSignals: what watches ends with 1, the rest dies by the signal, and nothing is said.
func TestSignals(t *testing.T) {
	t.Parallel()
	url := server(t)
	// What this process catches its children do not ignore, even where it was started to ignore it, as by nohup.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP, syscall.SIGINT)
	t.Cleanup(func() { signal.Stop(caught) })
	for _, c := range []struct {
		args   string
		signal syscall.Signal
		code   int // 0: the process dies by the signal
	}{
		{"get pods -w -o name", syscall.SIGINT, 1},
		{"get pods -w -o name", syscall.SIGTERM, 1},
		{"logs -f p", syscall.SIGHUP, 1},
		{"proxy --port=0", syscall.SIGINT, 0},
		{"proxy --port=0", syscall.SIGTERM, 0},
		{"get --raw /api/v1/namespaces/default/pods/p/log", syscall.SIGTERM, 0},
	} {
		t.Run(c.args+" "+c.signal.String(), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			t.Cleanup(cancel)
			cmd := exec.CommandContext(ctx, os.Args[0],
				append(strings.Fields(c.args), "--server", url, "--kubeconfig", os.DevNull, "--cache-dir",
					t.TempDir())...)
			cmd.Env = append(os.Environ(), "KUBECTL_UNDER_TEST=1")
			var said strings.Builder
			cmd.Stderr = &said
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			first, err := bufio.NewReader(out).ReadString('\n') // it is at work
			if err != nil {
				t.Errorf("no output: %v", err)
			}
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) {
				t.Fatalf("after %q: %v, want an exit by the signal", first, err)
			}
			status := exit.Sys().(syscall.WaitStatus)
			if c.code == 0 && (!status.Signaled() || status.Signal() != c.signal) ||
				c.code != 0 && status.ExitStatus() != c.code {
				t.Errorf("ended with %v", exit)
			}
			if said.Len() > 0 {
				t.Errorf("said %q", said.String())
			}
		})
	}
}
