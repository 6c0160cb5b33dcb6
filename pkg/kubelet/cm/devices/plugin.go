package devices

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/util/validation"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin is a plug-in that has registered.
type plugin struct {
	pluginapi.DevicePluginClient
	resource string
	endpoint string // the path of its socket
	options  *pluginapi.DevicePluginOptions
	conn     *grpc.ClientConn
}

// connect makes a plug-in the one of its resource and closes the connection to its predecessor, whose stream then ends.
// With nil options the plug-in is asked for them. It dials without mu, and checks afterwards that Run still runs: a
// stream that began after the end would never be waited for. maxResources bounds the table even against plug-ins that
// register ever new names.
func (m *Manager) connect(ctx context.Context, resource, endpoint string,
	options *pluginapi.DevicePluginOptions) error {
	if !isExtended(resource) {
		return fmt.Errorf("the ResourceName %q is invalid", resource)
	}
	path, err := m.socket(endpoint)
	if err != nil {
		return err
	}
	p, err := dial(ctx, path, resource, options)
	if err != nil {
		return fmt.Errorf("connect to the device plug-in of %s: %w", resource, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running == nil || m.running.Err() != nil {
		return errors.Join(errors.New("the kubelet does not take device plug-ins now"), p.conn.Close())
	}
	k := m.resources[resource]
	if k == nil {
		if len(m.resources) >= maxResources {
			return errors.Join(fmt.Errorf("there are %d resources of device plug-ins already", maxResources),
				p.conn.Close())
		}
		k = &kind{}
		m.resources[resource] = k
	}
	if k.plugin != nil {
		k.plugin.conn.Close() // ends its stream; an error means that it has ended
	}
	k.plugin = p
	m.cfg.Metrics.PluginRegistered(resource)
	m.cfg.Log.Info("device plug-in registered", "resource", resource, "endpoint", endpoint)
	running := m.running
	m.streams.Go(func() { m.follow(running, p) })
	return nil
}

// dial connects to a plug-in and waits until it answers, within callTimeout.
func dial(ctx context.Context, path, resource string, options *pluginapi.DevicePluginOptions) (*plugin, error) {
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, err
	}
	p := &plugin{DevicePluginClient: pluginapi.NewDevicePluginClient(conn), resource: resource, endpoint: path,
		options: options, conn: conn}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if options == nil {
		p.options, err = p.GetDevicePluginOptions(ctx, &pluginapi.Empty{})
	} else {
		err = connected(ctx, conn)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return p, nil
}

// connected waits until the connection is established, and fails at the first refusal: a plug-in registers when it
// listens.
func connected(ctx context.Context, conn *grpc.ClientConn) error {
	conn.Connect()
	for {
		switch s := conn.GetState(); s {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			return errors.New("nobody listens at its socket")
		default:
			if !conn.WaitForStateChange(ctx, s) {
				return ctx.Err()
			}
		}
	}
}

// follow records a plug-in's lists of devices until its stream or ctx ends. It has its own goroutine for each plug-in,
// which streams counts. A successor may have replaced p already; gone then changes nothing.
func (m *Manager) follow(ctx context.Context, p *plugin) {
	err := m.watch(ctx, p)
	m.gone(p)
	if closed := p.conn.Close(); ctx.Err() == nil {
		m.cfg.Log.Info("device plug-in is gone", "resource", p.resource, "endpoint", p.endpoint, "err",
			errors.Join(err, closed))
	}
}

// watch reads the stream of a plug-in. Each message is the whole list and replaces the one before it. A list that
// update refuses ends the connection: the plug-in has to register again.
func (m *Manager) watch(ctx context.Context, p *plugin) error {
	stream, err := p.ListAndWatch(ctx, &pluginapi.Empty{})
	if err != nil {
		return err
	}
	for {
		list, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := m.update(p, list.GetDevices()); err != nil {
			return err
		}
	}
}

// socket checks the path of a plug-in's socket: it must be below the kubelet's directory, even if links lead elsewhere.
// Plug-ins name their socket themselves. Without the check a registration could make the kubelet, which is root,
// connect to any socket of the node.
func (m *Manager) socket(path string) (string, error) {
	rel, err := filepath.Rel(m.cfg.RootDir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("the socket %s is not beneath %s", path, m.cfg.RootDir)
	}
	info, err := m.root.Stat(rel)
	if err != nil {
		return "", fmt.Errorf("the socket of a device plug-in: %w", err)
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return "", fmt.Errorf("%s is no socket", path)
	}
	return path, nil
}

// isExtended reports whether a name is that of an extended resource: qualified, and not Kubernetes' own.
func isExtended(name string) bool {
	domain, _, qualified := strings.Cut(name, "/")
	return qualified && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io") &&
		!strings.HasPrefix(name, "requests.") &&
		len(validation.IsQualifiedName("requests."+name)) == 0
}

// ask asks the plug-in which devices it prefers. The answer is only a preference: choose drops ids that are not
// available or too many.
func (p *plugin) ask(ctx context.Context, available, must []string, count int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := p.GetPreferredAllocation(ctx,
		&pluginapi.PreferredAllocationRequest{ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{
			{AvailableDeviceIDs: available, MustIncludeDeviceIDs: must, AllocationSize: int32(count)}}})
	if err != nil {
		return nil, fmt.Errorf("device plugin GetPreferredAllocation rpc failed with err: %w", err)
	}
	if len(r.GetContainerResponses()) == 0 {
		return nil, nil
	}
	return r.ContainerResponses[0].GetDeviceIDs(), nil
}

// allocate asks the plug-in how its devices get into a container.
func (p *plugin) allocate(ctx context.Context, ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, allocateTimeout)
	defer cancel()
	r, err := p.Allocate(ctx,
		&pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids}}})
	if err != nil {
		return nil, err
	}
	if len(r.GetContainerResponses()) == 0 || r.ContainerResponses[0] == nil {
		return nil, fmt.Errorf("no containers return in allocation response %v", r)
	}
	return r.ContainerResponses[0], nil
}

// preStart tells the plug-in that a container with these devices is about to start.
func (p *plugin) preStart(ctx context.Context, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, pluginapi.KubeletPreStartContainerRPCTimeoutInSecs*time.Second)
	defer cancel()
	if _, err := p.PreStartContainer(ctx, &pluginapi.PreStartContainerRequest{DevicesIds: ids}); err != nil {
		return fmt.Errorf("device plugin PreStartContainer rpc failed with err: %w", err)
	}
	return nil
}

// speaks reports whether one of the versions is known here.
func speaks(versions ...string) bool {
	return slices.ContainsFunc(versions, func(v string) bool {
		return slices.Contains(pluginapi.SupportedVersions[:], v)
	})
}
