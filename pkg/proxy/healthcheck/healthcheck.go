// Package healthcheck answers load balancers on services' health check node ports: 200 while the node has ready
// endpoints of the service and the proxy writes rules, else 503.
package healthcheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"bonsai/pkg/connlimit"
	"bonsai/pkg/proxy"
)

// Bounds of all ports together: connections, and bytes of unanswered requests on all of them. Every pod reaches the
// ports, and users that may create Services choose how many there are. Load balancers hold a few connections for each
// Service.
const (
	maxConnections = 2048
	maxReceived    = 1 << 20
)

// Servers holds one server per service with a health check port.
type Servers struct {
	alive func() bool
	log   *slog.Logger
	want  map[proxy.Name]proxy.Health
	open  map[proxy.Name]*server
	limit *connlimit.Untrusted // of all servers
}

// New returns an empty set of servers, which ask alive whether the node's rules are written. They end when the context
// of the Apply that started them does.
func New(alive func() bool, log *slog.Logger) *Servers {
	return &Servers{alive: alive, log: log, want: map[proxy.Name]proxy.Health{}, open: map[proxy.Name]*server{},
		limit: connlimit.NewUntrusted(connlimit.UntrustedConfig{Most: maxConnections, Bytes: maxReceived})}
}

// Apply starts, changes and stops servers. A port that is taken is tried again with every round; other services are not
// affected.
func (s *Servers) Apply(ctx context.Context, u proxy.Update) error {
	for name, h := range u.Health {
		if old := s.open[name]; old != nil && old.port != h.Port {
			old.close()
			delete(s.open, name)
		}
		if s.want[name] = h; h.Port == 0 {
			delete(s.want, name)
		}
	}
	for name, h := range s.want {
		if s.open[name] == nil {
			srv, err := s.listen(ctx, name, h.Port)
			if err != nil {
				s.log.Warn("Could not serve a service's health check port", "service", name, "err", err)
				continue
			}
			s.open[name] = srv
		}
		s.open[name].local.Store(int64(h.Local))
	}
	return nil
}

// server answers for one service.
type server struct {
	name  proxy.Name
	port  uint16
	alive func() bool
	local atomic.Int64
	http  http.Server
	stop  func() bool
}

func (s *Servers) listen(ctx context.Context, name proxy.Name, port uint16) (*server, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(int(port))))
	if err != nil {
		return nil, fmt.Errorf("listen on port %d: %w", port, err)
	}
	srv := &server{name: name, port: port, alive: s.alive}
	srv.http = http.Server{Handler: srv, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: 5 * time.Second,
		IdleTimeout:  time.Minute, MaxHeaderBytes: 16 << 10, ConnState: connlimit.ConnState,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
	srv.stop = context.AfterFunc(ctx, func() { _ = srv.http.Close() })
	go func() {
		if err := srv.http.Serve(s.limit.Listener(listener)); !errors.Is(err, http.ErrServerClosed) {
			s.log.Warn("A service's health check server ended", "service", name, "err", err)
		}
	}()
	return srv, nil
}

func (s *server) close() {
	s.stop()
	_ = s.http.Close()
}

// answer is upstream's body.
type answer struct {
	Service struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"service"`
	LocalEndpoints      int  `json:"localEndpoints"`
	ServiceProxyHealthy bool `json:"serviceProxyHealthy"`
}

// ServeHTTP answers any path.
func (s *server) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	a := answer{LocalEndpoints: int(s.local.Load()), ServiceProxyHealthy: s.alive()}
	a.Service.Namespace, a.Service.Name = s.name.Namespace, s.name.Name
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(a.LocalEndpoints))
	if a.LocalEndpoints == 0 || !a.ServiceProxyHealthy {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	// A failed write means that the client is gone.
	_ = json.NewEncoder(w).Encode(a)
}
