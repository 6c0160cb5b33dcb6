package cri

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/runtime"
)

// upgraded is a runtime that is another one after a restart.
type upgraded struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	restarted *atomic.Bool
}

func (u upgraded) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	version := "1.6.20"
	if u.restarted.Load() {
		version = "2.1.0"
	}
	return &runtimeapi.VersionResponse{RuntimeName: "containerd", RuntimeVersion: version}, nil
}

func (u upgraded) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	if !u.restarted.Load() {
		return &runtimeapi.StatusResponse{
			RuntimeHandlers: []*runtimeapi.RuntimeHandler{
				{Name: "old", Features: &runtimeapi.RuntimeHandlerFeatures{UserNamespaces: true}}}}, nil
	}
	return &runtimeapi.StatusResponse{
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{
			{Name: "runc", Features: &runtimeapi.RuntimeHandlerFeatures{UserNamespaces: true}}}}, nil
}

// The kubelet outlives its runtime: what an upgraded one is and can do holds from the next check of its health on.
func TestAnUpgradedRuntimeIsAskedAgain(t *testing.T) {
	t.Parallel()
	u := upgraded{restarted: &atomic.Bool{}}
	c, err := Dial(t.Context(), Config{Endpoint: serve(t, u)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if v := c.Version(); v.Version != "1.6.20" || !c.Handler("old").UserNamespaces {
		t.Errorf("at first: %+v, %+v", v, c.Handler("old"))
	}
	u.restarted.Store(true)
	if _, err := c.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := c.Version(); v.Version != "2.1.0" || c.Handler("old").UserNamespaces || !c.Handler("runc").UserNamespaces {
		t.Errorf("after the restart: %+v, old %+v, runc %+v", v, c.Handler("old"), c.Handler("runc"))
	}
}

// driven is a runtime with a cgroup driver.
type driven struct {
	fakeRuntime
	answer *runtimeapi.RuntimeConfigResponse
}

func (d driven) RuntimeConfig(context.Context,
	*runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return d.answer, nil
}

// TestCgroupDriver: the driver comes from the runtime's answer. A runtime older than containerd 2.0 gives none.
func TestCgroupDriver(t *testing.T) {
	t.Parallel()
	of := func(d runtimeapi.CgroupDriver) driven {
		return driven{answer: &runtimeapi.RuntimeConfigResponse{
			Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: d}}}
	}
	for want, runtimes := range map[string][]runtimeapi.RuntimeServiceServer{
		"systemd":  {of(runtimeapi.CgroupDriver_SYSTEMD)},
		"cgroupfs": {of(runtimeapi.CgroupDriver_CGROUPFS)},
		"":         {fakeRuntime{}, driven{answer: &runtimeapi.RuntimeConfigResponse{}}},
	} {
		for _, r := range runtimes {
			c, err := Dial(t.Context(), Config{Endpoint: serve(t, r)})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := c.CgroupDriver(t.Context()); err != nil || got != want {
				t.Errorf("%T: %q, %v, want %q", r, got, err, want)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestWithoutImageVolumes: the words of containerd 1.7 about a mount of an image, and about another one.
func TestWithoutImageVolumes(t *testing.T) {
	t.Parallel()
	old := status.Error(codes.Unknown,
		`failed to generate container "6" spec: failed to generate spec: failed to mkdir "": mkdir : no such file or directory`)
	image := runtime.ContainerRequest{Options: runtime.ContainerOptions{Mounts: []runtime.Mount{{Image: "sha256:1"}}}}
	if got := Message(withoutImageVolumes(image, old)); !strings.HasPrefix(got,
		"the container runtime does not support image volumes (containerd does since 2.1): failed to generate") {
		t.Error(got)
	}
	other := status.Error(codes.Unknown, "no space left on device")
	if got := withoutImageVolumes(image, other); got != other {
		t.Error(got)
	}
	if got := withoutImageVolumes(runtime.ContainerRequest{}, old); got != old {
		t.Error(got)
	}
}
