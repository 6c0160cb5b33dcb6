package kubeletproxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	gorilla "github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	streamcommand "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	corev1 "k8s.io/api/core/v1"
)

// runtime is a container runtime's streaming server. Its commands are: cat, fail (exit code 7), size, and wait (until
// the connection ends, which it tells ended).
type runtime struct{ ended chan struct{} }

func (r *runtime) Exec(ctx context.Context, _ string, cmd []string, in io.Reader, out, errOut io.WriteCloser, _ bool,
	resize <-chan streamcommand.TerminalSize) error {
	switch cmd[0] {
	case "cat":
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
		_, err := io.WriteString(errOut, "done")
		return err
	case "fail":
		return utilexec.CodeExitError{Err: errors.New("exit 7"), Code: 7}
	case "size":
		s := <-resize
		_, err := fmt.Fprintf(out, "%dx%d", s.Width, s.Height)
		return err
	}
	defer close(r.ended)
	_, err := io.WriteString(out, "waiting")
	if err == nil {
		_, err = io.Copy(io.Discard, in) // ends with the connection
	}
	return err
}

func (r *runtime) Attach(ctx context.Context, id string, in io.Reader, out, errOut io.WriteCloser, tty bool,
	resize <-chan streamcommand.TerminalSize) error {
	return r.Exec(ctx, id, []string{"cat"}, in, out, errOut, tty, resize)
}

func (r *runtime) PortForward(_ context.Context, _ string, port int32, s io.ReadWriteCloser) error {
	defer s.Close()
	line := make([]byte, 5)
	if _, err := io.ReadFull(s, line); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s, "%s on %d", line, port)
	return err
}

// streamingHouse is an API server's front before a kubelet before a runtime; it returns the front's URL.
func streamingHouse(t *testing.T, r *runtime) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := streaming.DefaultConfig
	cfg.BaseURL = &url.URL{Scheme: "http", Host: l.Addr().String()}
	cri, err := streaming.NewServer(cfg, r)
	if err != nil {
		t.Fatal(err)
	}
	backend := &httptest.Server{Listener: l, Config: &http.Server{Handler: cri}}
	backend.Start()
	t.Cleanup(backend.Close)
	p := houseOf(t, true, func(w http.ResponseWriter, r *http.Request) { kubeletOf(cri, w, r) })
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := p.PortForward()
		switch r.URL.Path {
		case "/exec":
			c = p.Exec()
		case "/attach":
			c = p.Attach()
		}
		if err := connect(c, "p", "", w, r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// kubeletOf asks the runtime for a URL and passes the connection on.
func kubeletOf(cri streaming.Server, w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var to string
	switch {
	case strings.HasPrefix(r.URL.Path, "/exec/"):
		resp, err := cri.GetExec(
			&runtimeapi.ExecRequest{ContainerId: "c", Cmd: q["command"], Stdin: q.Has("input"), Stdout: q.Has("output"),
				Stderr: q.Has("error"), Tty: q.Has("tty")})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		to = resp.Url
	case strings.HasPrefix(r.URL.Path, "/attach/"):
		resp, err := cri.GetAttach(
			&runtimeapi.AttachRequest{ContainerId: "c", Stdin: q.Has("input"), Stdout: q.Has("output"),
				Stderr: q.Has("error")})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		to = resp.Url
	default:
		resp, err := cri.GetPortForward(&runtimeapi.PortForwardRequest{PodSandboxId: "s", Port: ports(q["port"])})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		to = resp.Url
	}
	u, _ := url.Parse(to)
	proxy.NewUpgradeAwareHandler(u, nil, false, true, plainErrors{}).ServeHTTP(w, r)
}

func ports(of []string) (out []int32) {
	for _, s := range of {
		if n, err := strconv.ParseInt(s, 10, 32); err == nil {
			out = append(out, int32(n))
		}
	}
	return out
}

type plainErrors struct{}

func (plainErrors) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// run executes what path says over WebSocket, as kubectl does first.
func run(ctx context.Context, base, path string, o remotecommand.StreamOptions) error {
	e, err := remotecommand.NewWebSocketExecutor(&rest.Config{Host: base}, http.MethodGet, base+path)
	if err != nil {
		return err
	}
	return e.StreamWithContext(ctx, o)
}

func TestCommandsOverWebSocket(t *testing.T) {
	t.Parallel()
	base := streamingHouse(t, &runtime{})
	for _, path := range []string{"/exec?command=cat&stdin=true&stdout=true&stderr=true",
		"/attach?stdin=true&stdout=true&stderr=true"} {
		var out, errOut bytes.Buffer
		err := run(t.Context(), base, path,
			remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &errOut})
		if err != nil || out.String() != "hello" || errOut.String() != "done" {
			t.Errorf("%s: %q, %q, %v", path, &out, &errOut, err)
		}
	}
	var out bytes.Buffer
	err := run(t.Context(), base, "/exec?command=fail&stdout=true", remotecommand.StreamOptions{Stdout: &out})
	if exit := (exec.CodeExitError{}); !errors.As(err, &exit) || exit.Code != 7 {
		t.Errorf("a failing command: %v", err)
	}
	if err := run(t.Context(), base, "/exec?command=size&stdout=true&tty=true",
		remotecommand.StreamOptions{Stdout: &out, Tty: true, TerminalSizeQueue: &oneSize{}}); err != nil ||
		out.String() != "80x24" {
		t.Errorf("resize: %q, %v", &out, err)
	}
}

// oneSize is a terminal that is never resized.
type oneSize struct{ told bool }

func (s *oneSize) Next() *remotecommand.TerminalSize {
	if s.told {
		return nil
	}
	s.told = true
	return &remotecommand.TerminalSize{Width: 80, Height: 24}
}

// A client that goes away ends the command's connection.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	r := &runtime{ended: make(chan struct{})}
	base := streamingHouse(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	stdin, _ := io.Pipe() // never says anything
	go func() {
		_, _ = io.ReadFull(out, make([]byte, len("waiting")))
		cancel()
	}()
	if err := run(ctx, base, "/exec?command=wait&stdin=true&stdout=true",
		remotecommand.StreamOptions{Stdin: stdin, Stdout: in}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled command: %v", err)
	}
	select {
	case <-r.ended:
	case <-time.After(10 * time.Second):
		t.Error("the runtime was not told")
	}
}

func TestPortForwardOverWebSocket(t *testing.T) {
	t.Parallel()
	base := streamingHouse(t, &runtime{})
	u, _ := url.Parse(base + "/portforward")
	dialer, err := portforward.NewSPDYOverWebsocketDialer(u, &rest.Config{Host: base})
	if err != nil {
		t.Fatal(err)
	}
	conn, protocol, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil || protocol != portforward.PortForwardProtocolV1Name {
		t.Fatalf("%s, %v", protocol, err)
	}
	defer conn.Close()
	h := http.Header{}
	h.Set(corev1.PortHeader, "80")
	h.Set(corev1.PortForwardRequestIDHeader, "1")
	h.Set(corev1.StreamType, corev1.StreamTypeError)
	problems, err := conn.CreateStream(h)
	if err != nil {
		t.Fatal(err)
	}
	defer problems.Close()
	h.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(h)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(data, "hello")
	if b, err := io.ReadAll(data); err != nil || string(b) != "hello on 80" {
		t.Errorf("%q, %v", b, err)
	}
}

// The API server translates version 5 for exec and attach alone. A client that offers it for port-forward among others,
// as JavaScript's does, gets what the kubelet chooses.
func TestTheKubeletChoosesAPortForwardsVersion(t *testing.T) {
	t.Parallel()
	d := gorilla.Dialer{Subprotocols: []string{"v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io",
		"v2.channel.k8s.io", "channel.k8s.io"}}
	ws, resp, err := d.DialContext(t.Context(),
		"ws"+strings.TrimPrefix(streamingHouse(t, &runtime{}), "http")+"/portforward?ports=80", nil)
	if err != nil {
		t.Fatalf("%v, %v", err, resp)
	}
	defer ws.Close()
	if got := ws.Subprotocol(); got != "v4.channel.k8s.io" {
		t.Errorf("the protocol is %q", got)
	}
	if err := ws.WriteMessage(gorilla.BinaryMessage, []byte("\x00hello")); err != nil {
		t.Fatal(err)
	}
	var data []byte
	for string(data) != "P\x00hello on 80" { // the port, little-endian, comes first
		_, message, err := ws.ReadMessage()
		if err != nil {
			t.Fatalf("%q, then %v", data, err)
		}
		if message[0] == 0 {
			data = append(data, message[1:]...)
		}
	}
}

// What a kubelet refuses is told as it said it.
func TestRefusalOverWebSocket(t *testing.T) {
	t.Parallel()
	p := houseOf(t, true, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "container not found", http.StatusNotFound)
	})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := connect(p.Exec(), "p", "", w, r); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(front.Close)
	err := run(t.Context(), front.URL, "/exec?command=x&stdout=true", remotecommand.StreamOptions{Stdout: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "unable to upgrade connection: container not found") {
		t.Error(err)
	}
}

func TestLogOverWebSocket(t *testing.T) {
	t.Parallel()
	p := house(t, true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := connect(p.Log(), "p", "", w, r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	for query, want := range map[string]string{"": "/containerLogs/ns/p/app", "limitBytes=4": "/con"} {
		conn, _, err := gorilla.DefaultDialer.DialContext(t.Context(),
			"ws"+strings.TrimPrefix(server.URL, "http")+"/log?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		var ended error
		for {
			var piece []byte
			_, piece, ended = conn.ReadMessage()
			if ended != nil {
				break
			}
			got = append(got, piece...)
		}
		conn.Close()
		if string(got) != want {
			t.Errorf("log?%s: %q, not %q (%v)", query, got, want, ended)
		}
	}
}
