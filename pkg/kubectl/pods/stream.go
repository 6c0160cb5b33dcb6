package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"golang.org/x/term"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
)

// Session is one exec or attach.
type Session struct {
	// Namespace, Pod and Container say where; Command is what to run, nil to attach.
	Namespace, Pod, Container string
	Command                   []string
	// Stdin passes standard input, TTY asks for a terminal.
	Stdin, TTY bool
	// Streams are the local ends. With a terminal, ErrOut gets nothing.
	Streams cli.IOStreams
	// detachable, if not nil, reads Streams.In, which is a terminal.
	detachable *detachable
}

// Run streams until the command ends. A command that fails is a *cli.ExitError with its code. With TTY, the local
// terminal is in raw mode until Run returns, so that control characters reach the container, and its size is sent
// whenever it changes. The terminal is restored on every way out: a shell in raw mode is unusable.
func (s Session) Run(ctx context.Context, c *resource.Client, cfg *rest.Config) error {
	executor, err := s.executor(c, cfg)
	if err != nil {
		return err
	}
	opts := remotecommand.StreamOptions{Stdout: s.Streams.Out, Tty: s.TTY}
	if s.Stdin {
		opts.Stdin = s.Streams.In
	}
	if !s.TTY {
		opts.Stderr = s.Streams.ErrOut
	}
	if file, ok := s.Streams.In.(*os.File); ok && s.TTY && s.Stdin && term.IsTerminal(int(file.Fd())) {
		restore, sizes, err := takeTerminal(ctx, int(file.Fd()), s.Command == nil)
		if err != nil {
			return err
		}
		defer restore()
		opts.TerminalSizeQueue = sizes
		if s.detachable != nil {
			err = s.detachable.stream(ctx, executor, opts)
		} else {
			err = executor.StreamWithContext(ctx, opts)
		}
		if ended := cli.Interrupted(ctx); ended != nil {
			return ended
		}
		return exitError(err)
	}
	return exitError(executor.StreamWithContext(ctx, opts))
}

// exitError turns the exit code of the remote command into that of kubectl.
func exitError(err error) error {
	var code exec.CodeExitError
	if errors.As(err, &code) {
		return &cli.ExitError{Code: code.Code, Err: &failed{code.Code}}
	}
	return err
}

// failed is a command's exit with a code other than 0.
type failed struct{ code int }

func (f *failed) Error() string { return fmt.Sprintf("command terminated with exit code %d", f.code) }

// Plain tells that the message stands without "error: ".
func (f *failed) Plain() bool { return true }

// executor makes the connection's executor: WebSocket, and SPDY if the server or a proxy on the way refuses the
// upgrade. Any other error does not fall back: the command may have begun, and must not run twice.
func (s Session) executor(c *resource.Client, cfg *rest.Config) (remotecommand.Executor, error) {
	verb := "attach"
	query := url.Values{}
	set := func(name string, on bool) {
		if on {
			query.Set(name, "true")
		}
	}
	if s.Command != nil {
		verb = "exec"
		query["command"] = s.Command
	}
	query.Set("container", s.Container)
	set("stdin", s.Stdin)
	set("stdout", s.Streams.Out != nil)
	set("stderr", !s.TTY)
	set("tty", s.TTY)
	path, err := resource.ObjectPath(Mapping(), s.Namespace, s.Pod, verb)
	if err != nil {
		return nil, err
	}
	u := c.REST.Post().AbsPath(path...).URL()
	u.RawQuery = query.Encode()
	spdy, err := remotecommand.NewSPDYExecutor(cfg, http.MethodPost, u)
	if err != nil || !WebSockets("KUBECTL_REMOTE_COMMAND_WEBSOCKETS") {
		return spdy, err
	}
	ws, err := remotecommand.NewWebSocketExecutor(cfg, http.MethodGet, u.String())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(ws, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// WebSockets reports whether streams are tried over WebSocket before SPDY: unless the variable of that name says false.
func WebSockets(variable string) bool { return !strings.EqualFold(os.Getenv(variable), "false") }

// takeTerminal makes the terminal raw and reports its sizes until restore is called. With redraw the first size is one
// too large in both directions: what runs already in the container sees a change, and shows its prompt again.
func takeTerminal(ctx context.Context, fd int, redraw bool) (restore func(), sizes remotecommand.TerminalSizeQueue,
	err error) {
	state, err := term.MakeRaw(fd)
	if err != nil {
		return nil, nil, fmt.Errorf("set the terminal to raw mode: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	q := &sizeQueue{ctx: ctx, fd: fd, changed: make(chan os.Signal, 1), first: true, redraw: redraw}
	signal.Notify(q.changed, syscall.SIGWINCH)
	return func() {
		cancel()
		signal.Stop(q.changed)
		_ = term.Restore(fd, state)
	}, q, nil
}

// sizeQueue gives the sizes of a terminal, one per call of Next. One goroutine calls Next. Signals that come while
// nobody waits are merged: only the latest size counts.
type sizeQueue struct {
	ctx     context.Context // ends with the session; Next has no parameter for it
	fd      int
	changed chan os.Signal
	first   bool
	// redraw makes the first size one column and row too large: the change to the right size has the program on the
	// terminal draw its screen again.
	redraw bool
}

// Next returns the size now, later each size the terminal changes to, nil at the end.
func (q *sizeQueue) Next() *remotecommand.TerminalSize {
	if q.redraw {
		q.redraw = false
		if w, h, err := term.GetSize(q.fd); err == nil {
			return &remotecommand.TerminalSize{Width: uint16(w + 1), Height: uint16(h + 1)}
		}
	}
	if !q.first {
		select {
		case <-q.changed:
		case <-q.ctx.Done():
			return nil
		}
	}
	q.first = false
	w, h, err := term.GetSize(q.fd)
	if err != nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: uint16(w), Height: uint16(h)}
}

// IsTerminal reports whether in is a terminal.
func IsTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Finished is the error of streaming to a pod that has ended.
func Finished(pod *corev1.Pod, verb string) error {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return fmt.Errorf("cannot %s a container in a completed pod; current phase is %s", strings.TrimSpace(verb),
			pod.Status.Phase)
	}
	return nil
}
