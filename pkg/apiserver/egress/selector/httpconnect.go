package selector

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bonsai/pkg/safetext"
)

// maxAnswer bounds the header of a proxy's answer, in bytes.
const maxAnswer = 16 << 10

// httpConnect opens a connection by the method CONNECT. Nothing that the proxy does holds it longer than ctx and
// dialTimeout, or makes it read more than maxAnswer.
func (p *proxy) httpConnect(ctx context.Context, _, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := p.connect(ctx)
	if err != nil {
		return nil, p.unreachable(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	opened, err := ask(conn, addr)
	if !stop() { // the deadline is in force, or comes into force at any time
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, p.refused(addr, err)
	}
	return opened, nil
}

// ask sends the request for addr to the proxy behind conn, and reads its answer. What follows the answer is from the
// other side.
func ask(conn net.Conn, addr string) (net.Conn, error) {
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr,
		Header: http.Header{"User-Agent": nil}}
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	bounded := &io.LimitedReader{R: conn, N: maxAnswer}
	buffered := bufio.NewReaderSize(bounded, maxAnswer)
	answer, err := http.ReadResponse(buffered, r)
	switch {
	case err != nil && bounded.N <= 0:
		return nil, fmt.Errorf("its answer has more than %d bytes", maxAnswer)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("it closed the connection before the end of its answer")
	case err != nil:
		return nil, safetext.Error(err)
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("code %d: %s%s", answer.StatusCode, safetext.Text(answer.Status), reason(buffered))
	}
	early := make([]byte, buffered.Buffered())
	if _, err := io.ReadFull(buffered, early); err != nil {
		return nil, err
	}
	return &begun{Conn: conn, early: early}, nil
}

// reason returns what a proxy says beside a refusal: the first line of what has come with it. It waits for no more.
func reason(answer *bufio.Reader) string {
	said, err := answer.Peek(min(answer.Buffered(), safetext.MaxText))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	if line = safetext.Text(line); line == "" {
		return ""
	}
	return ": " + line
}

// begun is a connection whose first bytes have been read already. Like any connection, it has one reader at a time.
type begun struct {
	net.Conn
	early []byte
}

// Read implements net.Conn.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.early) > 0 {
		n := copy(p, b.early)
		b.early = b.early[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}
