// Package etcd keeps the API server's objects in etcd (3.5.8 or newer, for correct progress notifications) under
// Kubernetes' own keys. It is the only importer of the etcd client, and speaks etcd's gRPC messages directly: values
// are not copied on their way, and a watch is one stream read by its own reader, without goroutines between.
//
// It needs four transactions of etcd: create a key that is free, put or delete a key that is still at a revision, and
// the one with which API servers agree on who compacts.
package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/safetext"
)

// defaultPrefix is where Kubernetes keeps its keys in etcd.
const defaultPrefix = "/registry"

// Config says which etcd to use and how. Endpoints or Client is required.
type Config struct {
	// Endpoints are URLs ("https://127.0.0.1:2379") of one etcd cluster; TLS is for https ones.
	Endpoints []string
	TLS       *tls.Config
	// Dial opens the connections to Endpoints, whose host:port it gets, through a proxy; nil: they are direct.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Client, if set, is used instead of Endpoints and TLS, and is not closed by Close.
	Client *clientv3.Client
	// Prefix stands in etcd for the "/registry" of storage's keys. Default: "/registry".
	Prefix string
	// Facts reads what selectors need from values. nil: items have the facts of their drafts only.
	Facts *storage.FactsTable
	// Transform returns how values under a key are changed on their way into etcd and back; nil: not at all. nil
	// instead of the function: no value is changed.
	Transform func(key string) storage.Transformer
	// Timeout bounds each request to etcd, with the wait for a connection. Default: 10 s.
	Timeout time.Duration
	// Observe, if set, is called after each request with its operation ("get", "list", "create", …), the key or prefix
	// of keys that it was about (storage's, whatever Prefix is; another text if it was about no object), how long it
	// took and how it ended.
	Observe func(operation, key string, took time.Duration, err error)
	// Log gets compaction and lease trouble. Default: discard.
	Log *slog.Logger
}

// Store is a storage.Interface on etcd.
type Store struct {
	ctx    context.Context // ends the watch streams; cancelled by Close
	cancel context.CancelFunc
	cfg    Config
	owned  *clientv3.Client // to be closed with the Store
	kv     pb.KVClient
	watch  pb.WatchClient
	status pb.MaintenanceClient
	leases *leases
	call   []grpc.CallOption

	compacted atomic.Int64
}

var _ storage.Interface = (*Store)(nil)

// New makes a Store. It does not wait for etcd: the first request does. The Store lives until Close or the end of ctx.
func New(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Prefix == "" {
		cfg.Prefix = defaultPrefix
	}
	cfg.Prefix = "/" + strings.Trim(cfg.Prefix, "/")
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{cfg: cfg}
	client := cfg.Client
	if client == nil {
		var err error
		if client, err = dial(ctx, cfg); err != nil {
			return nil, err
		}
		s.owned = client
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	conn := client.ActiveConnection()
	s.kv, s.watch, s.status = pb.NewKVClient(conn), pb.NewWatchClient(conn), pb.NewMaintenanceClient(conn)
	// Waiting for the connection instead of failing at once carries requests over a restart of etcd.
	// etcd bounds the size of a request. An answer has up to chunk objects, far more than gRPC's default of 4 MiB.
	s.call = []grpc.CallOption{grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(math.MaxInt32),
		grpc.MaxCallSendMsgSize(math.MaxInt32)}
	s.leases = &leases{client: pb.NewLeaseClient(conn), call: s.call, open: map[int64]*lease{}}
	return s, nil
}

// dial makes the client and its one gRPC connection, without waiting for it. A lost connection is tried again after 50
// ms to a second, so that requests go on soon after a restart of etcd. Keepalive pings find a peer that vanished
// without a word within 40 s.
func dial(ctx context.Context, cfg Config) (*clientv3.Client, error) {
	if len(cfg.Endpoints) == 0 {
		return nil, errors.New("etcd: no endpoints given")
	}
	for _, endpoint := range cfg.Endpoints {
		if !strings.Contains(endpoint, "://") {
			continue // host:port, as etcd's client takes it
		}
		if _, err := safetext.ParseURL(endpoint); err != nil { // the client would take all of it for a host
			return nil, fmt.Errorf("etcd: %w", err)
		}
	}
	retry := grpc.ConnectParams{MinConnectTimeout: 3 * time.Second,
		Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}}
	options := []grpc.DialOption{grpc.WithConnectParams(retry)}
	if cfg.Dial != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return cfg.Dial(ctx, "tcp", addr)
		}))
	}
	client, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: cfg.Endpoints, TLS: cfg.TLS, Logger: zap.NewNop(),
		DialKeepAliveTime: 30 * time.Second, DialKeepAliveTimeout: 10 * time.Second,
		DialOptions: options,
	})
	if err != nil {
		return nil, fmt.Errorf("etcd: make a client for %s: %w", safetext.URLs(strings.Join(cfg.Endpoints, ",")),
			safetext.URLError(err))
	}
	return client, nil
}

// Close ends the watches and, if New made it, the connection. Requests under way on that connection fail.
func (s *Store) Close() error {
	s.cancel()
	if s.owned == nil {
		return nil
	}
	if err := s.owned.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("etcd: close the client: %w", err)
	}
	return nil
}

// keyRoot is how all keys of storage begin.
const keyRoot = "/registry"

// path is key's place in etcd.
func (s *Store) path(key string) []byte {
	if s.cfg.Prefix == keyRoot {
		return []byte(key)
	}
	return []byte(s.cfg.Prefix + strings.TrimPrefix(key, keyRoot))
}

func (s *Store) key(path []byte) string {
	if s.cfg.Prefix == keyRoot {
		return string(path)
	}
	return keyRoot + string(path[len(s.cfg.Prefix):])
}

// after returns the first key that does not begin with prefix (which does not end in 0xff).
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	end[len(end)-1]++
	return end
}
