package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"bonsai/pkg/archiveregistry"
	"bonsai/pkg/cluster/plan/localimage"
)

// localRegistryConnections bounds the connections that are served at once; containerd makes a few for each pull.
const localRegistryConnections = 64

// localImages serves the local images to the node's containerd. A node takes an image when its first pod needs it.
// Importing all of them at the start took each node a second of processor time, at the moment when all nodes have the
// most to do.
type localImages struct {
	listener net.Listener
	log      *slog.Logger
	// offered answers for the images that the node may take now (offer).
	offered atomic.Pointer[http.Handler]
}

// listenForImages listens for the node's containerd. Run calls it before it starts containerd, whose first pull would
// otherwise find nobody.
func listenForImages(log *slog.Logger) (*localImages, error) {
	listener, err := net.Listen("tcp", localimage.RegistryAddress)
	if err != nil {
		return nil, fmt.Errorf("listen for requests of local images: %w", err)
	}
	return &localImages{listener: listener, log: log}, nil
}

// offer sets the images that the node may take, in place of those before.
func (l *localImages) offer(n *Config) {
	handler := archiveregistry.New(filepath.Join(n.BinDir, "images"), n.Images, l.log)
	l.offered.Store(&handler)
}

// serve answers containerd until ctx ends. offer must have been called.
func (l *localImages) serve(ctx context.Context) {
	// Pods in the node's network namespace reach the listener, too: so every request is bounded in time and size.
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			(*l.offered.Load()).ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, WriteTimeout: 10 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(l.log.Handler(), slog.LevelWarn),
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(netutil.LimitListener(l.listener, localRegistryConnections)); ctx.Err() == nil {
		l.log.Error("local images are no longer served", "err", err)
	}
}
