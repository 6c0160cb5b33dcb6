package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"golang.org/x/net/netutil"

	"bonsai/pkg/archiveregistry"
	"bonsai/pkg/cluster/plan/localimage"
)

// localRegistryConnections bounds the connections that are served at once; containerd makes a few for each pull.
const localRegistryConnections = 64

// serveImages listens for the node's containerd, and returns a function that serves it the local images until ctx ends.
// A node takes an image when its first pod needs it. Importing all of them at the start took each node a second of
// processor time, at the moment when all nodes have the most to do.
func (n *Config) serveImages(log *slog.Logger) (serve func(ctx context.Context), err error) {
	// Run calls serveImages before it starts containerd, whose first pull would otherwise find nobody.
	listener, err := net.Listen("tcp", localimage.RegistryAddress)
	if err != nil {
		return nil, fmt.Errorf("listen for requests of local images: %w", err)
	}
	// Pods in the node's network namespace reach the listener, too: so every request is bounded in time and size.
	server := &http.Server{
		Handler:           archiveregistry.New(filepath.Join(n.BinDir, "images"), n.Images, log),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, WriteTimeout: 10 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return func(ctx context.Context) {
		defer context.AfterFunc(ctx, func() { server.Close() })()
		if err := server.Serve(netutil.LimitListener(listener, localRegistryConnections)); ctx.Err() == nil {
			log.Error("local images are no longer served", "err", err)
		}
	}, nil
}
