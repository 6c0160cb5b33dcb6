// Package pluginmanager finds the plug-ins of a node and hands them to the handler of their type. Each plug-in puts a
// socket into the directory of registrations and describes itself there; it learns whether it was accepted. A plug-in
// whose socket disappears is gone.
//
// The protocol: https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/ and
// k8s.io/kubelet/pkg/apis/pluginregistration.
package pluginmanager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Handler takes plug-ins of one type. Its methods are called one after the other.
type Handler interface {
	// Register takes a plug-in that listens at endpoint, the path of a socket, and speaks the versions. It is called
	// again after an error. ctx ends with the Manager, not with the call: what follows the plug-in may live as long.
	Register(ctx context.Context, name, endpoint string, versions []string) error
	// Deregister forgets a plug-in that listens there; another of the same name may have registered since.
	Deregister(ctx context.Context, name, endpoint string)
}

// Manager follows a directory. All but Period is required.
type Manager struct {
	Dir string
	// Handlers by type: CSIPlugin, DevicePlugin, DRAPlugin.
	Handlers map[string]Handler
	// Period is how often plug-ins that could not be taken are tried again; 2 seconds by default.
	Period time.Duration
	Log    *slog.Logger
}

// rest is how often the directory is read even without a notification from the system: notifications may be lost, and
// they end when the directory is made again.
const rest = 10 * time.Second

// callTimeout bounds one question to a plug-in.
const callTimeout = 10 * time.Second

// maxPlugins bounds the sockets that are looked at, maxAnswer the bytes of a plug-in's description.
const (
	maxPlugins = 256
	maxAnswer  = 64 << 10
)

// plugin is a socket that was seen.
type plugin struct {
	modified time.Time
	// kind, name and endpoint are what it said it is; "" until it was taken.
	kind, name, endpoint string
}

// Run follows the directory until ctx ends.
func (m *Manager) Run(ctx context.Context) error {
	if err := os.MkdirAll(m.Dir, 0o750); err != nil {
		return fmt.Errorf("make the directory of plug-ins: %w", err)
	}
	var changes <-chan fsnotify.Event
	var lost <-chan error
	notify, err := fsnotify.NewWatcher()
	if err != nil { // the system has few watches, and everybody on the node may use them up
		m.Log.Warn("plug-ins are looked for periodically only", "dir", m.Dir, "err", err)
	} else {
		defer notify.Close()
		changes, lost = notify.Events, notify.Errors
	}
	period := m.Period
	if period == 0 {
		period = 2 * time.Second
	}
	known := map[string]*plugin{}
	for {
		if notify != nil {
			if err := notify.Add(m.Dir); err != nil {
				m.Log.Debug("the directory of plug-ins is not watched", "dir", m.Dir, "err", err)
			}
		}
		wait := rest
		if m.look(ctx, known) {
			wait = period
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		case <-lost:
		case <-time.After(wait):
		}
	}
}

// look registers what is new and forgets what is gone; again: something could not be taken yet.
func (m *Manager) look(ctx context.Context, known map[string]*plugin) (again bool) {
	found, err := sockets(m.Dir)
	if err != nil {
		m.Log.Warn("plug-ins not listed", "dir", m.Dir, "err", err)
		again = true
	}
	for path, p := range known {
		if made, there := found[path]; err == nil && (!there || !made.Equal(p.modified)) {
			delete(known, path)
			if h := m.Handlers[p.kind]; h != nil {
				h.Deregister(ctx, p.name, p.endpoint)
			}
		}
	}
	for path, made := range found {
		p := known[path]
		if p == nil {
			p = &plugin{modified: made}
			known[path] = p
		}
		if p.name != "" {
			continue
		}
		if err := m.register(ctx, path, p); err != nil && ctx.Err() == nil {
			m.Log.Warn("plug-in not registered", "socket", path, "err", err)
			again = true
		}
	}
	return again
}

// sockets are the sockets in a directory, with when they were made. Names with a dot in front are not theirs yet.
func sockets(dir string) (map[string]time.Time, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]time.Time{}
	for _, e := range entries {
		if e.Type()&fs.ModeSocket == 0 || strings.HasPrefix(e.Name(), ".") || len(out) == maxPlugins {
			continue
		}
		if info, err := e.Info(); err == nil {
			out[filepath.Join(dir, e.Name())] = info.ModTime()
		}
	}
	return out, nil
}

// register asks a plug-in what it is, has it taken, and tells it so.
func (m *Manager) register(ctx context.Context, path string, p *plugin) error {
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := registerapi.NewRegistrationClient(conn)
	ask, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info, err := client.GetInfo(ask, &registerapi.InfoRequest{})
	if err != nil {
		return fmt.Errorf("ask the plug-in what it is: %w", err)
	}
	endpoint := info.Endpoint
	if endpoint == "" {
		endpoint = path
	}
	h := m.Handlers[info.Type]
	if h == nil {
		err = fmt.Errorf("no handler registered for plugin type: %s at socket %s", info.Type, path)
	} else {
		err = h.Register(ctx, info.Name, endpoint, info.SupportedVersions)
	}
	tell, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	status := &registerapi.RegistrationStatus{PluginRegistered: err == nil}
	if err != nil {
		status.Error = err.Error()
	}
	if _, told := client.NotifyRegistrationStatus(tell, status); told != nil {
		err = errors.Join(err, fmt.Errorf("tell the plug-in that it is registered: %w", told))
	}
	if err == nil {
		p.kind, p.name, p.endpoint = info.Type, info.Name, endpoint
		m.Log.Info("plug-in registered", "type", info.Type, "name", info.Name, "endpoint", endpoint)
	}
	return err
}
