package dra

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/validation"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
)

// driver is one that has registered.
type driver struct {
	name, endpoint string
	conn           *grpc.ClientConn
	// prepare and unprepare are the names of its methods. The messages of v1beta1 are those of v1 on the wire, except
	// fields that are new.
	prepare, unprepare string
	// stop ends the watch of its devices' health.
	stop   context.CancelFunc
	health map[string]health // by pool and device; m is locked
}

// Register implements pluginmanager.Handler. Of several of one name the last one is asked, as when a new version takes
// over from an old one.
//
// The plug-in manager calls it when a socket appears. It waits for no call: grpc connects with the first one.
func (m *Manager) Register(ctx context.Context, name, endpoint string, versions []string) error {
	d := &driver{name: name, endpoint: endpoint, health: map[string]health{}}
	switch {
	case slices.Contains(versions, drav1.DRAPluginService):
		d.prepare, d.unprepare = drav1.DRAPlugin_NodePrepareResources_FullMethodName,
			drav1.DRAPlugin_NodeUnprepareResources_FullMethodName
	case slices.Contains(versions, drav1beta1.DRAPluginService):
		d.prepare, d.unprepare = drav1beta1.DRAPlugin_NodePrepareResources_FullMethodName,
			drav1beta1.DRAPlugin_NodeUnprepareResources_FullMethodName
	default:
		return fmt.Errorf("the DRA plugin %s at %s supports none of %s, %s, only %s", name, endpoint,
			drav1.DRAPluginService, drav1beta1.DRAPluginService, strings.Join(versions, ", "))
	}
	// The name becomes part of field selectors and metrics.
	if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 {
		return fmt.Errorf("%q is no name of a DRA driver: %s", name, bad[0])
	}
	if err := m.socket(endpoint); err != nil {
		return err
	}
	var err error
	if d.conn, err = grpc.NewClient("unix:"+endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage))); err != nil {
		return fmt.Errorf("connect to DRA driver %s: %w", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.drivers) >= maxDrivers && m.drivers[name] == nil {
		return errors.Join(fmt.Errorf("there are %d DRA drivers already", maxDrivers), d.conn.Close())
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.stop = stop
	m.drivers[name] = append(m.drivers[name], d)
	delete(m.left, name)
	m.watches.Go(func() { m.watchHealth(watching, d) })
	return nil
}

// Deregister implements pluginmanager.Handler.
//
// The time is noted only when the last of that name goes: Run then deletes its ResourceSlices after wipeAfter.
func (m *Manager) Deregister(_ context.Context, name, endpoint string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drivers[name] = slices.DeleteFunc(m.drivers[name], func(d *driver) bool {
		if d.endpoint != endpoint {
			return false
		}
		d.stop()
		d.conn.Close() // what it is asked for now fails, and is tried again
		return true
	})
	if len(m.drivers[name]) == 0 {
		delete(m.drivers, name)
		m.left[name] = m.cfg.Now()
	}
}

// socket checks that a path is that of a socket beneath the kubelet's directory, wherever links lead.
//
// A driver chooses the path. Without the check a registration could have the kubelet, which is root, talk to any
// socket.
func (m *Manager) socket(path string) error {
	rel, err := filepath.Rel(m.cfg.RootDir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("the socket %s is not beneath %s", path, m.cfg.RootDir)
	}
	root, err := os.OpenRoot(m.cfg.RootDir)
	if err != nil {
		return fmt.Errorf("open the kubelet's directory: %w", err)
	}
	defer root.Close()
	info, err := root.Stat(rel)
	if err != nil {
		return fmt.Errorf("the socket of a DRA driver: %w", err)
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s is no socket", path)
	}
	return nil
}

// get returns a driver; it may not have registered yet.
func (m *Manager) get(name string) (*driver, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if list := m.drivers[name]; len(list) > 0 {
		return list[len(list)-1], nil
	}
	return nil, unregistered(name)
}

func unregistered(name string) error { return fmt.Errorf("DRA driver %s is not registered", name) }

// call calls a method of a driver.
func (m *Manager) call(ctx context.Context, d *driver, method string, q, r any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	begun := m.cfg.Now()
	err := d.conn.Invoke(ctx, method, q, r)
	m.cfg.Metrics.DRACall(d.name, method, status.Code(err).String(), m.cfg.Now().Sub(begun))
	return err
}
