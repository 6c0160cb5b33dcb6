package selector

import (
	"errors"
	"fmt"
	"sync/atomic"

	pb "sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"bonsai/pkg/safetext"
)

// packets checks what the proxy sends through one tunnel, before the library sees it. The library believes the proxy: a
// packet without the content that its type names would end this process, and each unknown type would be a new label of
// a metric. It has one reader; sent may be called by others.
type packets struct {
	dial atomic.Int64 // the number of the dial, which its answer repeats; 0: not sent yet
	conn int64        // the number of the connection; 0: none
	over bool         // the dial has been answered
}

// packetError is a packet that no proxy may send.
type packetError struct{ text string }

// Error implements error.
func (e *packetError) Error() string { return "the proxy broke the protocol: " + e.text }

func broken(format string, args ...any) error { return &packetError{fmt.Sprintf(format, args...)} }

// isBroken reports whether a proxy broke the protocol.
func isBroken(err error) bool {
	var e *packetError
	return errors.As(err, &e)
}

// sent notes what is sent.
func (k *packets) sent(p *pb.Packet) {
	if d := p.GetDialRequest(); d != nil {
		k.dial.Store(d.GetRandom())
	}
}

// received reports whether a packet is passed on. Those that mean nothing to this side are not. An error ends the
// tunnel. The text of a refusal is bounded in place.
func (k *packets) received(p *pb.Packet) (pass bool, err error) {
	switch p.GetType() {
	case pb.PacketType_DIAL_RSP:
		return true, k.answer(p.GetDialResponse())
	case pb.PacketType_DIAL_CLS:
		// Also legal after the answer: it ends the tunnel.
		switch c := p.GetCloseDial(); {
		case c == nil:
			return false, hollow(p.GetType())
		case c.GetRandom() != k.dial.Load():
			return false, broken("DIAL_CLS of another dial")
		}
		k.over = true
		return true, nil
	case pb.PacketType_DATA:
		switch d := p.GetData(); {
		case d == nil:
			return false, hollow(p.GetType())
		case k.conn == 0:
			return false, broken("DATA before the connection is open")
		case d.GetConnectID() != k.conn:
			return false, broken("DATA of another connection")
		default: // without bytes, it would look like the end of the connection
			return len(d.GetData()) > 0, nil
		}
	case pb.PacketType_CLOSE_RSP:
		c := p.GetCloseResponse()
		if c == nil {
			return false, hollow(p.GetType())
		}
		// A server also confirms the end of connections that it does not know.
		return k.conn != 0 && c.GetConnectID() == k.conn, nil
	case pb.PacketType_DRAIN: // an agent's hint for the server
		return false, nil
	default:
		return false, broken("packet of the type %d, which only clients send or nobody", p.GetType())
	}
}

// answer checks the answer to the dial.
func (k *packets) answer(d *pb.DialResponse) error {
	switch {
	case d == nil:
		return hollow(pb.PacketType_DIAL_RSP)
	case k.over:
		return broken("a second answer to the dial")
	case d.GetRandom() != k.dial.Load():
		return broken("DIAL_RSP of another dial")
	case d.GetError() == "" && d.GetConnectID() == 0:
		return broken("DIAL_RSP without a connection and without an error")
	}
	k.over = true
	if d.GetError() == "" {
		k.conn = d.GetConnectID()
		return nil
	}
	if d.Error = safetext.Text(d.GetError()); d.Error == "" { // which would be a success
		d.Error = "no reason given"
	}
	return nil
}

func hollow(t pb.PacketType) error { return broken("%s without its content", t) }
