package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/cmd/internal/daemon"
	"bonsai/cmd/internal/guard"
	"bonsai/pkg/delegated"
	"bonsai/pkg/traces"
	"bonsai/pkg/traces/persist"
	"bonsai/pkg/traces/receiver"
	"bonsai/pkg/traces/serve"
	"bonsai/pkg/traces/store"
	"bonsai/pkg/zpages"
)

// gcPercent trades a little CPU at changes for a small process: most of its memory is the store, which does not change.
const gcPercent = 40

// known refuses those who are anonymous, except for the paths that are always allowed, without asking the API server:
// pods reach the port of the API on their node, and each path that one of them makes up would be a request.
type known struct {
	delegated.Authorizer
	always delegated.Paths
}

// Authorize implements delegated.Authorizer.
func (k known) Authorize(ctx context.Context, user authnv1.UserInfo, what delegated.Attributes) (bool, string, error) {
	if user.Username == delegated.AnonymousUser {
		return k.always.Authorize(ctx, user, what)
	}
	return k.Authorizer.Authorize(ctx, user, what)
}

// maySee asks about a resource of objects. If no span names the resource, the object is for those who may see all.
func maySee(g *guard.Guard) serve.MaySee {
	return func(r *http.Request, verb string, of schema.GroupResource, namespace string) (bool, error) {
		if of.Resource == "" {
			of = schema.GroupResource{Group: "*", Resource: "*"}
		}
		return g.May(r, delegated.Attributes{Resource: &authzv1.ResourceAttributes{Verb: verb, Group: of.Group,
			Resource: of.Resource, Namespace: namespace}})
	}
}

// parts are what the process consists of.
type parts struct {
	store *store.Store
	disk  *persist.Log
	// receivers are that of the control plane and those of nodes.
	receivers []*receiver.Receiver
	// web is that of other machines, whose messages come by the API.
	web      *receiver.Receiver
	replayed atomic.Bool
}

// newParts returns an empty store, and receivers that fill it.
func newParts(o *options, log *slog.Logger) *parts {
	disk := persist.Open(o.dataDir, o.maxBytes, log)
	p := &parts{store: store.New(store.Config{MaxBytes: o.maxBytes, MaxSpans: o.maxSpansPerObject}), disk: disk}
	keep := func(r *traces.Record) traces.Reason {
		return p.store.Add(r, func(records [][]byte) { disk.Append(r.Sender, records) })
	}
	nodes := receiver.NewNodes()
	p.web = &receiver.Receiver{Nodes: nodes, Log: log, Keep: keep}
	p.receivers = append(p.receivers, &receiver.Receiver{Socket: o.socket, Log: log, Keep: keep})
	for node, socket := range o.nodeSockets {
		p.receivers = append(p.receivers, &receiver.Receiver{Socket: socket, Node: node, Nodes: nodes, Log: log,
			Keep: keep})
	}
	return p
}

// replay fills the store with what is left from the last process. It comes before the first span is taken, which would
// otherwise be older than those of the last process.
func (p *parts) replay(log *slog.Logger) {
	p.disk.Replay(func(record []byte) (node string, err error) {
		r, err := traces.Decode(record)
		if err != nil {
			return "", err
		}
		p.store.Add(r, func([][]byte) {})
		return r.Sender, nil
	})
	s := p.store.Stats()
	log.Info("taking spans", "objects", s.Objects, "spans", s.Spans, "bytes", s.Bytes)
	p.replayed.Store(true)
}

// fromOthers takes spans of other machines, once those of the last process have been read.
func (p *parts) fromOthers() http.Handler {
	take := p.web.HTTP(sender)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.replayed.Load() {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "the traces of the last process are being read, try again", http.StatusServiceUnavailable)
			return
		}
		take.ServeHTTP(w, r)
	})
}

// run takes spans and answers for them until ctx ends.
func run(ctx context.Context, o *options, pages *zpages.Config, log *slog.Logger) error {
	debug.SetGCPercent(gcPercent)
	door, err := o.guard.New(component, log)
	if err != nil {
		return err
	}
	always, err := delegated.NewPaths(o.guard.AlwaysAllowPaths)
	if err != nil {
		return err
	}
	door.Attributes, door.Authorizer = serve.Attributes, known{door.Authorizer, always}
	registry := daemon.NewMetrics()
	metrics, err := o.metrics.Show(registry)
	if err != nil {
		return err
	}
	p := newParts(o, log)
	registry.MustRegister(newCollector(p))
	sockets := make([]net.Listener, len(p.receivers))
	for i, r := range p.receivers {
		switch sockets[i], err = r.Listen(ctx); {
		case err != nil && r.Node == "":
			return err // the process ends, and the sockets with it
		case err != nil:
			// Pods with rights on their node write into its directory. They must not take the API from the others, and
			// with it the deletion of namespaces.
			log.Error("the spans of a node are not taken", "node", r.Node, "err", err)
		}
	}
	paths := serve.New(p.store, maySee(door), caller, time.Now).Paths()
	paths[serve.SpansPath] = p.fromOthers()
	server := &daemon.Server{Listener: o.listener, Sockets: o.servingSockets, Serving: o.serving,
		Clients: door.Clients, Guard: door.Wrap,
		Ready: []daemon.Check{{Name: "replay", Run: func() error {
			if !p.replayed.Load() {
				return errors.New("the traces of the last process are being read")
			}
			return nil
		}}},
		Registry: metrics, Pages: pages, Extra: paths, Log: log}
	// What came until the end is written after the last message was taken.
	disk, stop := context.WithCancel(context.WithoutCancel(ctx))
	written := make(chan struct{})
	go func() { defer close(written); p.disk.Run(disk) }()
	defer func() { stop(); <-written }()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { door.Run(ctx); return nil })
	g.Go(func() error {
		p.replay(log) // a second or two for a full store; senders wait at the sockets meanwhile
		for i, r := range p.receivers {
			if sockets[i] != nil {
				g.Go(func() error { return r.Serve(ctx, sockets[i]) })
			}
		}
		return nil
	})
	g.Go(func() error { return server.Run(ctx) })
	return g.Wait()
}
