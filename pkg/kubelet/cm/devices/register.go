package devices

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"bonsai/pkg/kubelet/cm"
)

// socketName is the socket where plug-ins register.
const socketName = "kubelet.sock"

// Run takes registrations until ctx ends. It removes all existing sockets first: plug-ins take that as the sign to
// register again. It returns after every stream has ended. connect refuses plug-ins once running has ended, so none
// begins after that.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.removeSockets(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.mu.Lock()
	m.running = ctx
	m.mu.Unlock()
	err := cm.Serve(ctx, filepath.Join(m.file.Dir, socketName), func(s *grpc.Server) {
		pluginapi.RegisterRegistrationServer(s, registration{m: m})
	})
	cancel()
	m.streams.Wait()
	return errors.Join(err, m.root.Close())
}

func (m *Manager) removeSockets() error {
	entries, err := os.ReadDir(m.file.Dir)
	if err != nil {
		return fmt.Errorf("look for sockets of device plug-ins: %w", err)
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSocket == 0 {
			continue
		}
		if err := os.Remove(filepath.Join(m.file.Dir, e.Name())); err != nil {
			return fmt.Errorf("remove the socket of an earlier time: %w", err)
		}
	}
	return nil
}

// registration is the service at the kubelet's socket.
type registration struct {
	pluginapi.UnimplementedRegistrationServer
	m *Manager
}

// Register takes a plug-in whose socket is in the same directory.
func (r registration) Register(ctx context.Context, q *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	if !speaks(q.Version) {
		return nil, fmt.Errorf("requested API version %q is not supported by kubelet. Supported version is %q",
			q.Version, pluginapi.SupportedVersions)
	}
	if q.Endpoint == "" || !filepath.IsLocal(q.Endpoint) {
		return nil, fmt.Errorf("the endpoint %q is no socket in %s", q.Endpoint, r.m.file.Dir)
	}
	options := q.Options
	if options == nil {
		options = &pluginapi.DevicePluginOptions{}
	}
	if err := r.m.connect(ctx, q.ResourceName, filepath.Join(r.m.file.Dir, q.Endpoint), options); err != nil {
		return nil, err
	}
	return &pluginapi.Empty{}, nil
}

// Register implements pluginmanager.Handler, for plug-ins of the type DevicePlugin; the name is the resource's.
func (m *Manager) Register(ctx context.Context, name, endpoint string, versions []string) error {
	if !speaks(versions...) {
		return fmt.Errorf("device plugin version(s) %s of %s not supported by kubelet. Supported: %q",
			strings.Join(versions, ", "), name, pluginapi.SupportedVersions)
	}
	return m.connect(ctx, name, endpoint, nil)
}

// Deregister implements pluginmanager.Handler. It compares the endpoint, because a newer plug-in may have taken the
// resource over before the socket of the old one disappeared.
func (m *Manager) Deregister(_ context.Context, name, endpoint string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.resources[name]; k != nil && k.plugin != nil && k.plugin.endpoint == endpoint {
		k.plugin.conn.Close() // ends its stream, and with that it is gone
	}
}
