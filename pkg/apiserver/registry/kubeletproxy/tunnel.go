package kubeletproxy

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/gorilla/websocket"
	"github.com/mxk/go-flowrate/flowrate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	protocols "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/tools/portforward"
)

// tunnelBuffer is the size of a tunnel's reads and writes.
const tunnelBuffer = 32 << 10

// tunnel carries the SPDY that a client has packed into WebSocket messages (SPDY/3.1+portforward.k8s.io) to a kubelet,
// unpacked.
//
// It connects to the kubelet first, while a refusal can still be answered. Then two goroutines copy, one for each
// direction, and a third waits for both. When one direction ends, it closes its target, from which the other one reads,
// so all three end. When the server stops, the deferred Close calls end them. Nothing here bounds the time or the
// bytes.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, location *url.URL) error {
	kubelet, err := p.upgrade(r, location)
	if err != nil {
		return err
	}
	defer kubelet.Close()
	upgrader := websocket.Upgrader{
		ReadBufferSize: tunnelBuffer, WriteBufferSize: tunnelBuffer,
		Subprotocols: []string{protocols.WebsocketsSPDYTunnelingPortForwardV1},
		// callers show a token or certificate, which a foreign page has not
		CheckOrigin: func(*http.Request) bool { return true },
	}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil // Upgrade has answered
	}
	client := portforward.NewTunnelingConnection("server", ws)
	defer client.Close()
	var both sync.WaitGroup
	carry := func(to io.WriteCloser, from io.Reader) {
		defer to.Close() // which ends the other direction too
		_, _ = io.CopyBuffer(to, from, make([]byte, tunnelBuffer))
	}
	both.Go(func() { carry(kubelet, p.paced(client)) })
	both.Go(func() { carry(client, p.paced(kubelet)) })
	ended := make(chan struct{})
	go func() { both.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-r.Context().Done(): // the server stops
	}
	return nil
}

// paced reads no faster than Config allows.
func (p *Proxy) paced(from io.Reader) io.Reader {
	if p.cfg.MaxBytesPerSec <= 0 {
		return from
	}
	return flowrate.NewReader(from, p.cfg.MaxBytesPerSec)
}

// upgrade opens a SPDY connection for port-forwarding to the kubelet. The kubelet's refusal becomes an error.
func (p *Proxy) upgrade(r *http.Request, location *url.URL) (io.ReadWriteCloser, error) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, location.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("connecting to the kubelet: %w", err)
	}
	req.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	req.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	req.Header.Set(httpstream.HeaderProtocolVersion, protocols.PortForwardV1Name)
	resp, err := p.kubelets().RoundTrip(req)
	if err != nil {
		return nil, asStatus(fmt.Errorf("connecting to the kubelet: %w", err))
	}
	if conn, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		return conn, nil
	}
	defer resp.Body.Close()
	message, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("reading the kubelet's refusal: %w", err))
	}
	return nil, apierrors.NewInternalError(fmt.Errorf("unable to upgrade connection: %s", message))
}
