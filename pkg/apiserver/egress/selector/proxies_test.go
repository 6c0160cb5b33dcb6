package selector

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	pb "sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
)

// accept answers each connection by serve, until the test ends. It then waits for all of them.
func accept(t *testing.T, l net.Listener, serve func(net.Conn)) {
	t.Helper()
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				stop := context.AfterFunc(t.Context(), func() { _ = conn.Close() })
				defer stop()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
}

func listen(t *testing.T, network, addr string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// echo returns the address of a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l := listen(t, "tcp", "127.0.0.1:0")
	accept(t, l, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	return l.Addr().String()
}

// connectProxy serves the method CONNECT, and counts.
func connectProxy(t *testing.T, l net.Listener) *atomic.Int32 {
	t.Helper()
	var asked atomic.Int32
	accept(t, l, func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		r, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		asked.Add(1)
		to, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.Host)
		if r.Method != http.MethodConnect || err != nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
		join(conn, reader, to)
	})
	return &asked
}

// join copies both ways until one ends.
func join(conn net.Conn, from io.Reader, to net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(to, from); _ = to.Close() })
	both.Go(func() { _, _ = io.Copy(conn, to); _ = conn.Close() })
	both.Wait()
}

// tunnels is a konnectivity server that dials itself.
type tunnels struct {
	pb.UnimplementedProxyServiceServer
	refuse string      // why dials fail; "": they do not
	mute   atomic.Bool // dials get no answer
	open   atomic.Int32
}

// Proxy implements pb.ProxyServiceServer.
func (s *tunnels) Proxy(stream pb.ProxyService_ProxyServer) error {
	s.open.Add(1)
	defer s.open.Add(-1)
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	request := first.GetDialRequest()
	if request == nil {
		return errors.New("the first packet is no DIAL_REQ")
	}
	if s.mute.Load() {
		<-stream.Context().Done()
		return nil
	}
	answer := func(problem string, id int64) error {
		return stream.Send(&pb.Packet{Type: pb.PacketType_DIAL_RSP, Payload: &pb.Packet_DialResponse{
			DialResponse: &pb.DialResponse{Random: request.Random, Error: problem, ConnectID: id}}})
	}
	to, err := (&net.Dialer{}).DialContext(stream.Context(), request.Protocol, request.Address)
	if s.refuse != "" || err != nil {
		return answer(s.refuse, 0)
	}
	defer to.Close()
	if err := answer("", 7); err != nil {
		return err
	}
	var back sync.WaitGroup
	defer back.Wait()
	back.Go(func() {
		for buffer := make([]byte, 4096); ; {
			n, err := to.Read(buffer)
			if err != nil {
				_ = stream.Send(&pb.Packet{Type: pb.PacketType_CLOSE_RSP, Payload: &pb.Packet_CloseResponse{
					CloseResponse: &pb.CloseResponse{ConnectID: 7}}})
				return
			}
			if stream.Send(&pb.Packet{Type: pb.PacketType_DATA, Payload: &pb.Packet_Data{
				Data: &pb.Data{ConnectID: 7, Data: append([]byte(nil), buffer[:n]...)}}}) != nil {
				return
			}
		}
	})
	for {
		p, err := stream.Recv()
		if err != nil || p.Type == pb.PacketType_CLOSE_REQ {
			return to.Close()
		}
		if _, err := to.Write(p.GetData().GetData()); err != nil {
			return err
		}
	}
}

// konnectivity serves s at a socket, which it returns, until stop or the end of the test.
func konnectivity(t *testing.T, s pb.ProxyServiceServer) (socket string, stop func()) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	server := grpc.NewServer()
	pb.RegisterProxyServiceServer(server, s)
	l := listen(t, "unix", socket)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return socket, server.Stop
}

// secure serves TLS, and asks for a certificate that pool vouches for.
func secure(l net.Listener, own tls.Certificate, pool *x509.CertPool) net.Listener {
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
}
