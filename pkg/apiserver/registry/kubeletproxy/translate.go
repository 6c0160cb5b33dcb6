package kubeletproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/mxk/go-flowrate/flowrate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"
	constants "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

const (
	// pingEvery keeps connections to kubelets that carry streams alive: what stands between may forget those on which
	// nothing passes.
	pingEvery = 5 * time.Second
	// idleStream is how long nothing may happen between client and command, as long as kubelets allow.
	idleStream = 4 * time.Hour
	// lastWrite bounds the sending of a command's outcome, to a client that may have stopped reading.
	lastWrite = 60 * time.Second
)

// translate carries a WebSocket connection of version 5 (v5.channel.k8s.io), which says when a stream ends, to a
// kubelet as SPDY (v4.channel.k8s.io): runtimes do not know that version. Older WebSocket versions are passed through.
//
// It accepts the client before it connects to the kubelet. From then on a refusal of the kubelet can only reach the
// client as the outcome, on the error stream. A client that leaves ends its error stream, which cancels the command's
// streams.
func (p *Proxy) translate(w http.ResponseWriter, r *http.Request, location *url.URL, q url.Values) error {
	upgrader, err := spdy.NewRoundTripperWithConfig(
		spdy.RoundTripperConfig{UpgradeTransport: p.kubelets(), PingPeriod: pingEvery})
	if err != nil {
		return fmt.Errorf("connecting to the kubelet: %w", err)
	}
	executor, err := remotecommand.NewSPDYExecutorForProtocols(upgrader, upgrader, http.MethodPost, location,
		constants.StreamProtocolV4Name)
	if err != nil {
		return fmt.Errorf("connecting to the kubelet: %w", err)
	}
	conn := wsstream.NewConn(
		map[string]wsstream.ChannelProtocolConfig{
			constants.StreamProtocolV5Name: {Binary: true, Channels: channels(q)}})
	conn.SetIdleTimeout(idleStream)
	_, streams, err := conn.Open(w, r)
	if err != nil {
		return nil // Open has answered
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() { // nothing comes on the error stream but its end, which is the connection's
		_, _ = io.Copy(io.Discard, streams[constants.StreamErr])
		cancel()
	}()
	err = executor.StreamWithContext(ctx, p.streamOptions(ctx, cancel, q, streams))
	conn.SetWriteDeadline(lastWrite)
	outcome, encodeErr := json.Marshal(outcomeOf(err))
	if encodeErr == nil {
		_, _ = streams[constants.StreamErr].Write(outcome) // a client that left does not want to know
	}
	return nil
}

// channels are the directions of the five streams: input, output, errors, outcome, and size of the terminal.
func channels(q url.Values) []wsstream.ChannelType {
	all := []wsstream.ChannelType{wsstream.IgnoreChannel, wsstream.IgnoreChannel, wsstream.IgnoreChannel,
		wsstream.ReadWriteChannel, wsstream.IgnoreChannel}
	if q.Has("input") {
		all[constants.StreamStdIn] = wsstream.ReadChannel
	}
	if q.Has("output") {
		all[constants.StreamStdOut] = wsstream.WriteChannel
	}
	if q.Has("error") && !q.Has("tty") {
		all[constants.StreamStdErr] = wsstream.WriteChannel
	}
	if q.Has("tty") {
		all[constants.StreamResize] = wsstream.ReadChannel
	}
	return all
}

// streamOptions are what the client's streams are for the kubelet. ctx ends the session, and so does end.
func (p *Proxy) streamOptions(ctx context.Context, end func(), q url.Values,
	streams []io.ReadWriteCloser) remotecommand.StreamOptions {
	var o remotecommand.StreamOptions
	if q.Has("input") {
		o.Stdin = p.paced(streams[constants.StreamStdIn])
	}
	if q.Has("output") {
		o.Stdout = p.pacedWriter(streams[constants.StreamStdOut])
	}
	if o.Tty = q.Has("tty"); o.Tty {
		o.TerminalSizeQueue = newSizes(streams[constants.StreamResize], ctx.Done(), end)
	} else if q.Has("error") {
		o.Stderr = p.pacedWriter(streams[constants.StreamStdErr])
	}
	return o
}

// pacedWriter writes no faster than Config allows.
func (p *Proxy) pacedWriter(to io.Writer) io.Writer {
	if p.cfg.MaxBytesPerSec <= 0 {
		return to
	}
	return flowrate.NewWriter(to, p.cfg.MaxBytesPerSec)
}

// maxSize bounds the text of one size of a terminal, in bytes.
const maxSize = 4096

// sizes reads the sizes of a terminal, one JSON object after the other.
type sizes struct {
	next chan remotecommand.TerminalSize
	done <-chan struct{}
}

// newSizes reads sizes until done. What is no size, or too large for one, ends the session: the decoder keeps all of an
// object, and nobody would read on.
func newSizes(from io.Reader, done <-chan struct{}, end func()) *sizes {
	s := &sizes{make(chan remotecommand.TerminalSize), done}
	go func() {
		defer close(s.next)
		bounded := &io.LimitedReader{R: from}
		for d := json.NewDecoder(bounded); ; {
			bounded.N = maxSize
			var size remotecommand.TerminalSize
			if err := d.Decode(&size); errors.Is(err, io.EOF) {
				return // the client sends no more
			} else if err != nil {
				end()
				return
			}
			select {
			case s.next <- size:
			case <-done:
				return
			}
		}
	}()
	return s
}

// Next implements remotecommand.TerminalSizeQueue.
func (s *sizes) Next() *remotecommand.TerminalSize {
	select {
	case size, ok := <-s.next:
		if ok {
			return &size
		}
	case <-s.done:
	}
	return nil
}

// outcomeOf is the Status that ends a command: success, its exit code, or what went wrong.
func outcomeOf(err error) *metav1.Status {
	var exit exec.CodeExitError
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return &metav1.Status{Status: metav1.StatusSuccess}
	case errors.As(err, &exit):
		return &metav1.Status{Status: metav1.StatusFailure, Reason: constants.NonZeroExitCodeReason,
			Message: fmt.Sprintf("command terminated with non-zero exit code: %v", exit),
			Details: &metav1.StatusDetails{
				Causes: []metav1.StatusCause{{Type: constants.ExitCodeCauseType, Message: fmt.Sprint(exit.Code)}}}}
	case errors.As(err, &status):
		s := status.Status()
		return &s
	}
	s := apierrors.NewInternalError(err).Status()
	return &s
}
