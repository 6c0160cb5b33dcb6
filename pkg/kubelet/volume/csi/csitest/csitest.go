// Package csitest has a small storage driver for tests: it speaks the node's part of CSI at a socket, mounts a
// directory of its own for each volume, and keeps what it was asked.
package csitest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
)

// Driver is a storage driver. Set its fields before Start.
type Driver struct {
	csi.UnimplementedNodeServer
	// Capabilities are what the driver claims to support; Info is its description of the node, until SetInfo.
	Capabilities []csi.NodeServiceCapability_RPC_Type
	Info         *csi.NodeGetInfoResponse
	// Device is the path of the block device that each volume is that is to be one.
	Device string
	// Endpoint is the path of its socket, set by Start.
	Endpoint string
	data     string

	mu        sync.Mutex
	calls     []string
	staged    []*csi.NodeStageVolumeRequest
	published []*csi.NodePublishVolumeRequest
	expanded  []*csi.NodeExpandVolumeRequest
	// fail is what the next call is answered with.
	fail error
}

// Start has the driver listen until the test ends. Volumes are directories in which data stays.
func Start(t *testing.T, d *Driver) *Driver {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	d.Endpoint, d.data = filepath.Join(dir, "s"), filepath.Join(dir, "data")
	l, err := net.Listen("unix", d.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterNodeServer(server, d)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Fail has the next call fail.
func (d *Driver) Fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

// Calls are what was asked since the last time: the call and the volume.
func (d *Driver) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.calls
	d.calls = nil
	return out
}

// LastStaged and LastPublished are the newest requests of their kind.
func (d *Driver) LastStaged() *csi.NodeStageVolumeRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.staged[len(d.staged)-1]
}

// LastPublished is the newest request to publish.
func (d *Driver) LastPublished() *csi.NodePublishVolumeRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.published[len(d.published)-1]
}

// LastExpanded is the newest request to make a volume larger.
func (d *Driver) LastExpanded() *csi.NodeExpandVolumeRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.expanded[len(d.expanded)-1]
}

// NodeExpandVolume implements csi.NodeServer.
func (d *Driver) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse,
	error) {
	if err := d.call("expand", r.VolumeId); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expanded = append(d.expanded, r)
	return &csi.NodeExpandVolumeResponse{CapacityBytes: r.CapacityRange.RequiredBytes}, nil
}

// call notes a call.
func (d *Driver) call(what, volume string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, what+" "+volume)
	err := d.fail
	d.fail = nil
	return err
}

// NodeGetCapabilities implements csi.NodeServer.
func (d *Driver) NodeGetCapabilities(context.Context,
	*csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	out := &csi.NodeGetCapabilitiesResponse{}
	for _, c := range d.Capabilities {
		out.Capabilities = append(out.Capabilities,
			&csi.NodeServiceCapability{
				Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: c}}})
	}
	return out, nil
}

// NodeGetInfo implements csi.NodeServer.
func (d *Driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Info, nil
}

// SetInfo has the driver say something else of the node.
func (d *Driver) SetInfo(info *csi.NodeGetInfoResponse) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Info = info
}

// NodeGetVolumeStats implements csi.NodeServer: 40 of 100 bytes and 3 of 10 inodes are used.
func (d *Driver) NodeGetVolumeStats(_ context.Context,
	r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := d.call("measure", r.VolumeId+" at "+r.VolumePath); err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeStatsResponse{
		Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: 100, Available: 60, Used: 40},
			{Unit: csi.VolumeUsage_INODES, Total: 10, Available: 7, Used: 3}}}, nil
}

// NodeStageVolume implements csi.NodeServer.
func (d *Driver) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse,
	error) {
	if err := d.call("stage", r.VolumeId); err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.staged = append(d.staged, r)
	d.mu.Unlock()
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume implements csi.NodeServer.
func (d *Driver) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse,
	error) {
	return &csi.NodeUnstageVolumeResponse{}, d.call("unstage", r.VolumeId)
}

// NodePublishVolume implements csi.NodeServer: it makes the target and mounts the volume there, once.
func (d *Driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse,
	error) {
	if err := d.call("publish", r.VolumeId); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.published {
		if p.TargetPath == r.TargetPath {
			d.published = append(d.published, r)
			return &csi.NodePublishVolumeResponse{}, nil
		}
	}
	data, err := d.publish(r)
	if err != nil {
		return nil, err
	}
	if err := unix.Mount(data, r.TargetPath, "", unix.MS_BIND, ""); err != nil {
		return nil, fmt.Errorf("mount %s: %w", data, err)
	}
	d.published = append(d.published, r)
	return &csi.NodePublishVolumeResponse{}, nil
}

// publish makes the target, a file for a device, and tells what is to be mounted there.
func (d *Driver) publish(r *csi.NodePublishVolumeRequest) (data string, err error) {
	if r.VolumeCapability.GetBlock() != nil {
		return d.Device, os.WriteFile(r.TargetPath, nil, 0o600)
	}
	data = filepath.Join(d.data, r.VolumeId)
	if err := os.MkdirAll(data, 0o755); err != nil {
		return "", err
	}
	return data, os.Mkdir(r.TargetPath, 0o750)
}

// NodeUnpublishVolume implements csi.NodeServer.
func (d *Driver) NodeUnpublishVolume(_ context.Context,
	r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := d.call("unpublish", r.VolumeId); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var left []*csi.NodePublishVolumeRequest
	for _, p := range d.published {
		if p.TargetPath != r.TargetPath {
			left = append(left, p)
		}
	}
	d.published = left
	if err := unix.Unmount(r.TargetPath, 0); err != nil && err != unix.EINVAL && err != unix.ENOENT {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, os.RemoveAll(r.TargetPath)
}
