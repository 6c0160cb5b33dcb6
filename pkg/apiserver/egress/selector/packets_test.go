package selector

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	pb "sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
)

// What a proxy sends, by kind. random and 7 are the right numbers.
func dialled(random int64, problem string, id int64) *pb.Packet {
	return &pb.Packet{Type: pb.PacketType_DIAL_RSP, Payload: &pb.Packet_DialResponse{
		DialResponse: &pb.DialResponse{Random: random, Error: problem, ConnectID: id}}}
}

func data(id int64, text string) *pb.Packet {
	return &pb.Packet{Type: pb.PacketType_DATA, Payload: &pb.Packet_Data{
		Data: &pb.Data{ConnectID: id, Data: []byte(text)}}}
}

func closed(id int64) *pb.Packet {
	return &pb.Packet{Type: pb.PacketType_CLOSE_RSP, Payload: &pb.Packet_CloseResponse{
		CloseResponse: &pb.CloseResponse{ConnectID: id}}}
}

func dialClosed(random int64) *pb.Packet {
	return &pb.Packet{Type: pb.PacketType_DIAL_CLS, Payload: &pb.Packet_CloseDial{
		CloseDial: &pb.CloseDial{Random: random}}}
}

func empty(t pb.PacketType) *pb.Packet { return &pb.Packet{Type: t} }

// scripted answers a dial by what script returns for its number, and then waits or returns end.
type scripted struct {
	pb.UnimplementedProxyServiceServer
	script func(random int64) []*pb.Packet
	end    error
}

// Proxy implements pb.ProxyServiceServer.
func (s *scripted) Proxy(stream pb.ProxyService_ProxyServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	for _, p := range s.script(first.GetDialRequest().GetRandom()) {
		if err := stream.Send(p); err != nil {
			return err
		}
	}
	if s.end != nil {
		return s.end
	}
	<-stream.Context().Done()
	return nil
}

// dialScripted dials through a proxy with a script.
func dialScripted(t *testing.T, s *scripted) (*tunnelled, error) {
	t.Helper()
	socket, _ := konnectivity(t, s)
	dial := opened(t, nil, map[string]string{
		Etcd: "{proxyProtocol: GRPC, transport: {uds: {udsName: " + socket + "}}}"}).Dial(Etcd)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := dial(ctx, "tcp", "127.0.0.1:1")
	if ctx.Err() != nil {
		t.Errorf("the dial hangs: %v", err)
	}
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*tunnelled), nil
}

// TestBrokenDials: a proxy that answers a dial by what it may not send gives an error at once, and harms nobody.
func TestBrokenDials(t *testing.T) {
	t.Parallel()
	drain := empty(pb.PacketType_DRAIN)
	one := func(p *pb.Packet) func(int64) []*pb.Packet {
		return func(int64) []*pb.Packet { return []*pb.Packet{p} }
	}
	long := strings.Repeat("x\x1b[2J\n", 1<<18)
	for name, c := range map[string]struct {
		script func(random int64) []*pb.Packet
		end    error
		want   string
	}{
		"hollow answer":        {one(empty(pb.PacketType_DIAL_RSP)), nil, "DIAL_RSP without its content"},
		"hollow end of a dial": {one(empty(pb.PacketType_DIAL_CLS)), nil, "DIAL_CLS without its content"},
		"hollow data":          {one(empty(pb.PacketType_DATA)), nil, "DATA without its content"},
		"hollow end":           {one(empty(pb.PacketType_CLOSE_RSP)), nil, "CLOSE_RSP without its content"},
		"nothing":              {one(&pb.Packet{}), nil, "type 0"},
		"a client's packet":    {one(empty(pb.PacketType_CLOSE_REQ)), nil, "type 2"},
		"unknown type":         {one(empty(77)), nil, "type 77"},
		"other content": {func(r int64) []*pb.Packet {
			p := dialled(r, "", 7)
			p.Type = pb.PacketType_CLOSE_RSP
			return []*pb.Packet{p}
		}, nil, "CLOSE_RSP without its content"},
		"another dial's answer": {func(r int64) []*pb.Packet { return []*pb.Packet{dialled(r+1, "", 7)} }, nil,
			"DIAL_RSP of another dial"},
		"another dial's end": {func(r int64) []*pb.Packet { return []*pb.Packet{dialClosed(r + 1)} }, nil,
			"DIAL_CLS of another dial"},
		"no connection": {func(r int64) []*pb.Packet { return []*pb.Packet{dialled(r, "", 0)} }, nil,
			"without a connection and without an error"},
		"early data": {one(data(7, "x")), nil, "DATA before the connection is open"},
		"end of a dial": {func(r int64) []*pb.Packet { return []*pb.Packet{drain, closed(7), dialClosed(r)} }, nil,
			"dial closed"},
		"long refusal": {func(r int64) []*pb.Packet { return []*pb.Packet{dialled(r, "no agent "+long, 0)} }, nil,
			"no agent x[2J x"},
		"invisible refusal": {func(r int64) []*pb.Packet { return []*pb.Packet{dialled(r, "\x1b", 0)} }, nil,
			"no reason given"},
		"status":      {one(drain), status.Error(codes.Code(4711), "go\x1b[2Jaway"), "code = Unknown desc = go[2Jaway"},
		"long status": {one(drain), status.Error(codes.Internal, long), "code = Internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := dialScripted(t, &scripted{script: c.script, end: c.end})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && (len(err.Error()) > 1000 || strings.Contains(err.Error(), "\x1b")) {
				t.Errorf("the error has %d bytes or control characters", len(err.Error()))
			}
		})
	}
}

// TestBrokenConnections: a proxy that breaks the protocol ends the connection with an error, after the bytes that came
// before. What it may send, as drains and empty packets, does not.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	fits := []*pb.Packet{empty(pb.PacketType_DRAIN), data(7, ""), data(7, "he"), closed(8), data(7, ""), data(7, "llo")}
	for name, c := range map[string]struct {
		then func(random int64) *pb.Packet
		want string // "": the end of the connection is a good one
	}{
		"end":           {func(int64) *pb.Packet { return closed(7) }, ""},
		"end of a dial": {dialClosed, ""},
		"second answer": {func(r int64) *pb.Packet { return dialled(r, "", 7) }, "a second answer to the dial"},
		"other answer":  {func(r int64) *pb.Packet { return dialled(r+1, "", 8) }, "a second answer to the dial"},
		"hollow answer": {func(int64) *pb.Packet { return empty(pb.PacketType_DIAL_RSP) }, "DIAL_RSP without"},
		"hollow close":  {func(int64) *pb.Packet { return empty(pb.PacketType_DIAL_CLS) }, "DIAL_CLS without"},
		"hollow data":   {func(int64) *pb.Packet { return empty(pb.PacketType_DATA) }, "DATA without"},
		"hollow end":    {func(int64) *pb.Packet { return empty(pb.PacketType_CLOSE_RSP) }, "CLOSE_RSP without"},
		"other's data":  {func(int64) *pb.Packet { return data(8, "x") }, "DATA of another connection"},
		"no one's data": {func(int64) *pb.Packet { return data(0, "x") }, "DATA of another connection"},
		"unknown type":  {func(int64) *pb.Packet { return empty(77) }, "type 77"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := dialScripted(t, &scripted{script: func(random int64) []*pb.Packet {
				return append(append([]*pb.Packet{dialled(random, "", 7)}, fits...), c.then(random))
			}})
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			got, err := io.ReadAll(conn)
			if string(got) != "hello" {
				t.Errorf("got %q", got)
			}
			if c.want == "" && err != nil ||
				c.want != "" && (!isBroken(err) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// FuzzPackets sends any packets through the check to the rules that the library needs: it dereferences what the type
// names, and sends to channels of the one connection.
func FuzzPackets(f *testing.F) {
	encode := func(all ...*pb.Packet) []byte {
		var out []byte
		for _, p := range all {
			text, err := proto.Marshal(p)
			if err != nil {
				f.Fatal(err)
			}
			out = append(append(out, byte(len(text))), text...)
		}
		return out
	}
	f.Add(encode(dialled(5, "", 7), data(7, "hello"), closed(7)))
	f.Add(encode(dialled(5, "no agent", 0)))
	f.Add(encode(empty(pb.PacketType_DRAIN), dialClosed(5)))
	f.Add(encode(empty(pb.PacketType_DATA), empty(77), &pb.Packet{}))
	f.Fuzz(func(t *testing.T, in []byte) {
		k := &packets{}
		k.sent(&pb.Packet{Payload: &pb.Packet_DialRequest{DialRequest: &pb.DialRequest{Random: 5}}})
		answers, open := 0, int64(0)
		for len(in) > 0 {
			n := min(int(in[0]), len(in)-1)
			p := &pb.Packet{}
			err := proto.Unmarshal(in[1:1+n], p)
			in = in[1+n:]
			if err != nil {
				continue
			}
			pass, err := k.received(p)
			if err != nil && !isBroken(err) {
				t.Fatalf("%v is no packetError", err)
			}
			if err != nil || !pass {
				if err != nil {
					return // the tunnel ends
				}
				continue
			}
			switch p.GetType() {
			case pb.PacketType_DIAL_RSP:
				if answers++; p.GetDialResponse() == nil || answers > 1 || p.GetDialResponse().GetRandom() != 5 {
					t.Fatalf("passed on %v", p)
				}
				if d := p.GetDialResponse(); d.GetError() == "" {
					open = d.GetConnectID()
				}
			case pb.PacketType_DIAL_CLS:
				if p.GetCloseDial().GetRandom() != 5 {
					t.Fatalf("passed on %v", p)
				}
				return // the library ends the tunnel
			case pb.PacketType_DATA:
				if d := p.GetData(); open == 0 || d.GetConnectID() != open || len(d.GetData()) == 0 {
					t.Fatalf("passed on %v", p)
				}
			case pb.PacketType_CLOSE_RSP:
				if open == 0 || p.GetCloseResponse().GetConnectID() != open {
					t.Fatalf("passed on %v", p)
				}
				return
			default:
				t.Fatalf("passed on %v", p)
			}
		}
	})
}

// TestBrokenIsFound: wrapping hides no broken protocol.
func TestBrokenIsFound(t *testing.T) {
	t.Parallel()
	if !isBroken(errors.Join(io.EOF, broken("x"))) || isBroken(io.EOF) || isBroken(nil) {
		t.Error("isBroken is wrong")
	}
}
