package e2e

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// kubeletDir is what n2 has at /var/lib/kubelet.
func kubeletDir(parts ...string) string {
	return filepath.Join(append([]string{cluster.data, "nodes", "n2", "lib", "kubelet"}, parts...)...)
}

// serveAt serves gRPC at a socket until the test ends.
func serveAt(t *testing.T, socket string, register func(*grpc.Server)) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	go server.Serve(listener) //nolint:errcheck // it ends with the test
	t.Cleanup(server.Stop)
}

// widgets is a device plug-in of two widgets, which tells a container by a variable which one it has.
type widgets struct {
	pluginapi.UnimplementedDevicePluginServer
}

func (widgets) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

func (widgets) ListAndWatch(_ *pluginapi.Empty, s grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	err := s.Send(&pluginapi.ListAndWatchResponse{
		Devices: []*pluginapi.Device{{ID: "w0", Health: pluginapi.Healthy}, {ID: "w1", Health: pluginapi.Healthy}}})
	<-s.Context().Done()
	return err
}

func (widgets) Allocate(_ context.Context, q *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	r := &pluginapi.AllocateResponse{}
	for _, c := range q.ContainerRequests {
		r.ContainerResponses = append(r.ContainerResponses,
			&pluginapi.ContainerAllocateResponse{Envs: map[string]string{"WIDGET": strings.Join(c.DevicesIds, ",")}})
	}
	return r, nil
}

// TestDevicePlugin: a device plug-in registers with a node, whose pods get its devices, each another one; who comes
// when none is left waits.
func TestDevicePlugin(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "widgets")
	serveAt(t, kubeletDir("device-plugins", "widgets.sock"), func(s *grpc.Server) {
		pluginapi.RegisterDevicePluginServer(s, widgets{})
	})
	kubelet, err := grpc.NewClient("unix://"+kubeletDir("device-plugins", "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer kubelet.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	if _, err := pluginapi.NewRegistrationClient(kubelet).Register(ctx,
		&pluginapi.RegisterRequest{Version: pluginapi.Version, Endpoint: "widgets.sock",
			ResourceName: "example.com/widget"}); err != nil {
		t.Fatal(err)
	}
	k.eventually("widgets of the node", is("2"), "get", "node", "n2", "-o",
		`jsonpath={.status.allocatable.example\.com/widget}`)
	const one = "resources: {limits: {example.com/widget: 1}}"
	for _, name := range []string{"a", "b"} {
		k.apply(podOf(name, "echo $WIDGET; exec sleep 3600", one, ""))
	}
	k.ready("a", "b")
	if got := []string{k.run("logs", "a"), k.run("logs", "b")}; !slices.Contains(got, "w0") ||
		!slices.Contains(got, "w1") {
		t.Errorf("they have %v", got)
	}
	k.apply(podOf("c", "echo $WIDGET; exec sleep 3600", one, ""))
	k.events("c", "Insufficient example.com/widget")
	freed := k.run("logs", "a")
	k.run("delete", "pod", "a")
	k.ready("c")
	if got := k.run("logs", "c"); got != freed {
		t.Errorf("c has %q, a had %q", got, freed)
	}
}

// gadgets is a DRA driver that notes what it prepares.
type gadgets struct {
	drav1.UnimplementedDRAPluginServer
	registerapi.UnimplementedRegistrationServer
	registered chan string // the kubelet's answer: "" or why not

	mu    sync.Mutex
	notes []string
}

func (g *gadgets) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.DRAPlugin, Name: "gadgets.example.com",
		Endpoint:          "/var/lib/kubelet/plugins/gadgets/dra.sock",
		SupportedVersions: []string{drav1.DRAPluginService}}, nil
}

func (g *gadgets) NotifyRegistrationStatus(_ context.Context,
	s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	select {
	case g.registered <- s.Error:
	default: // only the first one is waited for
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

func (g *gadgets) NodePrepareResources(_ context.Context,
	q *drav1.NodePrepareResourcesRequest) (*drav1.NodePrepareResourcesResponse, error) {
	r := &drav1.NodePrepareResourcesResponse{Claims: map[string]*drav1.NodePrepareResourceResponse{}}
	for _, c := range q.Claims {
		g.note("prepare " + c.Name)
		r.Claims[c.Uid] = &drav1.NodePrepareResourceResponse{
			Devices: []*drav1.Device{{RequestNames: []string{"g"}, PoolName: "n2", DeviceName: "large"}}}
	}
	return r, nil
}

func (g *gadgets) NodeUnprepareResources(_ context.Context,
	q *drav1.NodeUnprepareResourcesRequest) (*drav1.NodeUnprepareResourcesResponse, error) {
	r := &drav1.NodeUnprepareResourcesResponse{Claims: map[string]*drav1.NodeUnprepareResourceResponse{}}
	for _, c := range q.Claims {
		g.note("unprepare " + c.Name)
		r.Claims[c.Uid] = &drav1.NodeUnprepareResourceResponse{}
	}
	return r, nil
}

func (g *gadgets) note(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.notes = append(g.notes, what)
}

func (g *gadgets) noted() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.notes, ", ")
}

// gadgetObjects are what the driver tells of its devices, and a pod that claims the one of them that its class and
// selector let it have.
const gadgetObjects = `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gadgets-n2}
spec:
  driver: gadgets.example.com
  nodeName: n2
  pool: {name: n2, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: small, attributes: {size: {int: 1}}}
  - {name: large, attributes: {size: {int: 9}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gadget}
spec: {selectors: [{cel: {expression: device.driver == "gadgets.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: large, namespace: gadgets}
spec:
  spec:
    devices:
      requests:
      - name: g
        exactly: {deviceClassName: gadget, selectors: [{cel: {expression: 'device.attributes["gadgets.example.com"].size > 5'}}]}
`

// TestResourceClaim: a DRA driver registers with a node and tells of its devices; a pod's claim by template gets the
// one that fits, the driver prepares it before the pod runs and takes it back when the pod is gone, and the claim goes.
func TestResourceClaim(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "gadgets")
	g := &gadgets{registered: make(chan string, 1)}
	serveAt(t, kubeletDir("plugins", "gadgets", "dra.sock"), func(s *grpc.Server) {
		drav1.RegisterDRAPluginServer(s, g)
	})
	serveAt(t, kubeletDir("plugins_registry", "gadgets.sock"), func(s *grpc.Server) {
		registerapi.RegisterRegistrationServer(s, g)
	})
	select {
	case why := <-g.registered:
		if why != "" {
			t.Fatal(why)
		}
	case <-time.After(patience()):
		t.Fatal("the kubelet has not registered the driver")
	}
	k.apply(gadgetObjects)
	t.Cleanup(func() { k.run("delete", "resourceslice/gadgets-n2", "deviceclass/gadget", "--ignore-not-found") })
	k.apply(podOf("user", "exec sleep 3600", "resources: {claims: [{name: it}]}",
		"resourceClaims: [{name: it, resourceClaimTemplateName: large}]"))
	k.ready("user")
	claim := k.run("get", "pod", "user", "-o", "jsonpath={.status.resourceClaimStatuses[0].resourceClaimName}")
	if got := g.noted(); got != "prepare "+claim {
		t.Errorf("the driver was asked: %s", got)
	}
	if got := k.run("get", "resourceclaim", claim, "-o",
		"jsonpath={.status.allocation.devices.results[0].device} {.status.reservedFor[0].name}"); got != "large user" {
		t.Errorf("the claim has %s", got)
	}
	if got := k.run("get", "pod", "user", "-o", "jsonpath={.spec.nodeName}"); got != "n2" {
		t.Errorf("the pod is on %s", got)
	}
	k.run("delete", "pod", "user")
	waitFor(t, "the driver takes the device back", func() bool {
		return strings.Contains(g.noted(), "unprepare "+claim)
	})
	k.eventually("no claims", is(""), "get", "resourceclaims", "-o", "name")
}
