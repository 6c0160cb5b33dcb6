package pods

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/moby/term"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"bonsai/pkg/kubectl/resource"
)

// defaultDetachKeys end an attachment without ending what runs, as in Docker.
const defaultDetachKeys = "ctrl-p,ctrl-q"

// Attachment is a session with what a container runs already.
type Attachment struct {
	Session
	// Quiet shows only what the container says.
	Quiet bool
	// DetachKeys are the keys after which the session ends and the container goes on, in Docker's form: letters or
	// ctrl-LETTER, with commas between them. Only who has a terminal can type them.
	DetachKeys string
}

// AddDetachKeys adds the flag for Attachment.DetachKeys.
func AddDetachKeys(set *pflag.FlagSet, keys *string) {
	set.StringVar(keys, "detach-keys", defaultDetachKeys, "Override the key sequence for detaching a container")
}

// Run attaches to a container of pod until it ends or the user detaches, and tells how to come back where that is of
// use. The container decides whether it is a terminal: its stream is sent as it is, and could not be read as anything
// else.
func (a Attachment) Run(ctx context.Context, c *resource.Client, cfg *rest.Config, pod *corev1.Pod) error {
	tty, ephemeral := terminalOf(pod, a.Container)
	if a.TTY && !tty && !a.Quiet {
		fmt.Fprintf(a.Streams.ErrOut, "error: Unable to use a TTY - container %s did not allocate one\n", a.Container)
	}
	a.TTY = tty
	typed := tty && a.Stdin
	if typed && !IsTerminal(a.Streams.In) {
		typed = false
		if !a.Quiet {
			fmt.Fprintln(a.Streams.ErrOut, "Unable to use a TTY - input is not a terminal or the right kind of file")
		}
	}
	if !a.Quiet {
		announce(a.Streams.ErrOut)
	}
	if !typed {
		return a.Session.Run(ctx, c, cfg)
	}
	keys := a.DetachKeys
	if keys == "" {
		keys = defaultDetachKeys
	}
	codes, err := term.ToBytes(keys)
	if err != nil {
		return fmt.Errorf("could not bind detach keys: %w", err)
	}
	a.detachable = &detachable{in: term.NewEscapeProxy(a.Streams.In, codes), out: a.Streams.Out,
		left: make(chan struct{})}
	if err := a.Session.Run(ctx, c, cfg); err != nil {
		return err
	}
	if !a.Quiet {
		back := fmt.Sprintf("kubectl attach %s -c %s -n %s -i -t", pod.Name, a.Container, pod.Namespace)
		if ephemeral {
			fmt.Fprintf(a.Streams.Out,
				"Session ended, the ephemeral container will not be restarted but may be reattached using '%s' if it is still running\n", back)
		} else {
			fmt.Fprintf(a.Streams.Out, "Session ended, resume using '%s' command\n", back)
		}
	}
	return nil
}

// announce tells on w what a user shall know who is about to be attached to a container.
func announce(w io.Writer) {
	fmt.Fprintln(w, "All commands and output from this session will be recorded in container logs, including credentials and sensitive information passed through the command prompt.")
	fmt.Fprintln(w, "If you don't see a command prompt, try pressing enter.")
}

// terminalOf reports whether a container of the pod has a terminal, and whether it is an ephemeral one.
func terminalOf(pod *corev1.Pod, container string) (tty, ephemeral bool) {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for _, c := range list {
			if c.Name == container {
				return c.TTY, false
			}
		}
	}
	for _, c := range pod.Spec.EphemeralContainers {
		if c.Name == container {
			return c.TTY, true
		}
	}
	return false, false
}

// detachable is a terminal that leaves the session when the detach keys are typed on it. The connection stays until the
// program ends, and is not seen any more: what breaks it off would be logged as an error, and the container's input may
// be one that is closed with its first session's.
type detachable struct {
	in   io.Reader // fails with term.EscapeError at the keys
	out  io.Writer
	left chan struct{} // closed when they were typed
}

// stream is executor's, but ends at the detach keys too.
func (d *detachable) stream(ctx context.Context, executor remotecommand.Executor,
	opts remotecommand.StreamOptions) error {
	opts.Stdin, opts.Stdout = d, d
	ended := make(chan error, 1)
	go func() { ended <- executor.StreamWithContext(ctx, opts) }()
	select {
	case err := <-ended:
		return err
	case <-d.left:
		return nil
	}
}

// Read implements io.Reader.
func (d *detachable) Read(b []byte) (int, error) {
	n, err := d.in.Read(b)
	if errors.Is(err, term.EscapeError{}) {
		close(d.left)
		select {} // an end would be passed on
	}
	return n, err
}

// Write implements io.Writer.
func (d *detachable) Write(b []byte) (int, error) {
	select {
	case <-d.left:
		return len(b), nil
	default:
		return d.out.Write(b)
	}
}
