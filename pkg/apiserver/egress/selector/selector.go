package selector

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"
)

// The kinds of connections, as a configuration names them.
const (
	// Cluster are connections to nodes, pods and Services.
	Cluster = "cluster"
	// ControlPlane are connections to other servers that the administrator names.
	ControlPlane = "controlplane"
	// Etcd are connections to etcd.
	Etcd = "etcd"
)

// Dial opens a connection, as net.Dialer's DialContext does.
type Dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// Selector knows the way of each kind of connection. A nil one leaves all connections direct. It is safe for concurrent
// use.
type Selector struct{ dials map[string]Dial }

// Options are what a Selector needs beside its file.
type Options struct {
	// Metrics takes what dialing counts; nil: nobody sees it.
	Metrics prometheus.Registerer
	// Log says when the certificates that the file names change. Default: discard.
	Log *slog.Logger
}

// Open reads the file of --egress-selector-config-file. It connects to nothing: a proxy may come later.
func Open(path string, o Options) (*Selector, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c, err := read(path)
	if err != nil {
		return nil, err
	}
	s, counted := &Selector{dials: map[string]Dial{}}, newMetrics(o.Metrics)
	for i := range c.EgressSelections {
		one := &c.EgressSelections[i]
		dial, err := one.Connection.dial(counted, o.Log)
		if err != nil {
			return nil, fmt.Errorf("egressSelections[%d].connection.%w", i, err)
		}
		s.dials[one.Name] = dial
	}
	return s, nil
}

// Dial returns what opens the connections of a kind through its proxy; nil: they are direct.
func (s *Selector) Dial(kind string) Dial {
	if s == nil {
		return nil
	}
	return s.dials[kind]
}

// Lookup returns Dial; nil without a Selector.
func (s *Selector) Lookup() func(kind string) Dial {
	if s == nil {
		return nil
	}
	return s.Dial
}

// dial returns what opens connections in the way that c says; nil: they are direct.
func (c *connection) dial(counted *metrics, log *slog.Logger) (Dial, error) {
	if c.ProxyProtocol == protocolDirect {
		return nil, nil
	}
	if uds := c.Transport.UDS; uds != nil {
		p := &proxy{name: uds.UDSName, connect: func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", uds.UDSName)
		}}
		if c.ProxyProtocol == protocolGRPC {
			return counted.counting("grpc", "uds", p.tunnel), nil
		}
		return counted.counting("http_connect", "uds", p.httpConnect), nil
	}
	connect, err := c.Transport.TCP.connect(log)
	if err != nil {
		return nil, fmt.Errorf("transport.tcp.%w", err)
	}
	p := &proxy{name: c.Transport.TCP.address(), connect: connect}
	return counted.counting("http_connect", "tcp", p.httpConnect), nil
}
