package csi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/tools/cache"
)

// callTimeout bounds one call of a driver.
const callTimeout = 2 * time.Minute

// NodeInfo is a driver's description of the node.
type NodeInfo struct {
	// ID is the driver's name for the node.
	ID string
	// MaxVolumes is the most volumes that the node can have, 0 for any number.
	MaxVolumes int64
	// Topology are the labels of where the node is.
	Topology map[string]string
}

// Announcer publishes the node's drivers in the API (the CSINode).
type Announcer interface {
	Announce(ctx context.Context, driver string, info NodeInfo) error
	// Limit announces a changed NodeInfo.MaxVolumes of a driver that was announced.
	Limit(ctx context.Context, driver string, maxVolumes int64) error
	Withdraw(ctx context.Context, driver string) error
}

// driver is a driver that has registered.
type driver struct {
	csi.NodeClient
	conn     *grpc.ClientConn
	endpoint string
	// forget ends the goroutine that follows its limit.
	forget context.CancelFunc
	// stages: volumes are staged once for all pods. mountGroup: it gives volumes to a group itself. multiWriter: it
	// distinguishes the access modes of single nodes. expands: it makes file systems larger. measures: it reports how
	// full volumes are.
	stages, mountGroup, multiWriter, expands, measures bool
}

func (n *driver) close() error {
	n.forget()
	return n.conn.Close()
}

// Objects are the CSIDrivers of the API server.
type Objects interface {
	// WatchCSIDriver lists and watches one by its name.
	WatchCSIDriver(name string) cache.ListerWatcher
}

// Drivers are the drivers that have registered. It is the handler of plug-ins of the type CSIPlugin.
type Drivers struct {
	announcer Announcer
	objects   Objects
	log       *slog.Logger

	mu    sync.Mutex
	known map[string]*driver
}

// NewDrivers returns an empty list.
func NewDrivers(a Announcer, objects Objects, log *slog.Logger) *Drivers {
	return &Drivers{announcer: a, objects: objects, log: log, known: map[string]*driver{}}
}

// Register implements pluginmanager.Handler. The driver's limit is followed until it is deregistered or ctx ends.
func (d *Drivers) Register(ctx context.Context, name, endpoint string, versions []string) error {
	if !slices.ContainsFunc(versions, func(v string) bool {
		return strings.HasPrefix(strings.TrimPrefix(v, "v"), "1.")
	}) {
		return fmt.Errorf("unsupported versions %v of the CSI driver %s: 1.x is spoken here", versions, name)
	}
	if name == "" || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q is no name of a CSI driver", name)
	}
	conn, err := grpc.NewClient("unix:"+endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	n := &driver{NodeClient: csi.NewNodeClient(conn), conn: conn, endpoint: endpoint}
	info, err := n.ask(ctx)
	if err == nil {
		err = d.announcer.Announce(ctx, name, info)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("register CSI driver %s: %w", name, err), conn.Close())
	}
	follow, forget := context.WithCancel(ctx)
	n.forget = forget
	d.mu.Lock()
	old := d.known[name]
	d.known[name] = n
	d.mu.Unlock()
	go d.follow(follow, name)
	if old != nil {
		return old.close()
	}
	return nil
}

// ask asks a driver for its capabilities and for its description of the node.
func (n *driver) ask(ctx context.Context) (NodeInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	can, err := n.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		return NodeInfo{}, fmt.Errorf("NodeGetCapabilities: %w", err)
	}
	for _, c := range can.Capabilities {
		switch c.GetRpc().GetType() {
		case csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME:
			n.stages = true
		case csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP:
			n.mountGroup = true
		case csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER:
			n.multiWriter = true
		case csi.NodeServiceCapability_RPC_EXPAND_VOLUME:
			n.expands = true
		case csi.NodeServiceCapability_RPC_GET_VOLUME_STATS:
			n.measures = true
		}
	}
	return n.info(ctx)
}

// info asks a driver for its description of the node.
func (n *driver) info(ctx context.Context) (NodeInfo, error) {
	got, err := n.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil {
		return NodeInfo{}, fmt.Errorf("NodeGetInfo: %w", err)
	}
	if got.NodeId == "" {
		return NodeInfo{}, errors.New("NodeGetInfo: the driver has no name for the node")
	}
	return NodeInfo{ID: got.NodeId, MaxVolumes: got.MaxVolumesPerNode,
		Topology: maps.Clone(got.GetAccessibleTopology().GetSegments())}, nil
}

// Deregister implements pluginmanager.Handler.
func (d *Drivers) Deregister(ctx context.Context, name, endpoint string) {
	d.mu.Lock()
	old := d.known[name]
	ours := old != nil && old.endpoint == endpoint
	if ours {
		delete(d.known, name)
	}
	d.mu.Unlock()
	if ours {
		// The driver is gone either way; what could not be taken back is replaced when it comes again.
		_ = errors.Join(old.close(), d.announcer.Withdraw(ctx, name))
	}
}

// get returns a driver. A missing one may only not have registered yet, so the error is one to retry.
func (d *Drivers) get(name string) (*driver, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.known[name]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("driver name %s not found in the list of registered CSI drivers", name)
}
