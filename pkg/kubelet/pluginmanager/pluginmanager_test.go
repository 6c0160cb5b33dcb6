package pluginmanager

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driver registers itself.
type driver struct {
	registerapi.UnimplementedRegistrationServer
	kind string
	told chan *registerapi.RegistrationStatus
}

func (d *driver) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: d.kind, Name: "d", Endpoint: "/e", SupportedVersions: []string{"1.0.0"}}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context,
	s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	d.told <- s
	return &registerapi.RegistrationStatusResponse{}, nil
}

// listen has the driver listen until the test ends, or stop is called.
func listen(t *testing.T, d *driver, socket string) (stop func()) {
	t.Helper()
	d.told = make(chan *registerapi.RegistrationStatus, 16)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	registerapi.RegisterRegistrationServer(s, d)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	ended := false
	stop = func() {
		if !ended {
			ended = true
			s.Stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return stop
}

// handler refuses a plug-in once, and tells what it is asked.
type handler struct {
	refuse bool
	asked  chan string
}

func (h *handler) Register(_ context.Context, name, endpoint string, versions []string) error {
	if h.refuse {
		h.refuse = false
		return errors.New("not yet")
	}
	h.asked <- name + " at " + endpoint + " of " + versions[0]
	return nil
}

func (h *handler) Deregister(_ context.Context, name, endpoint string) {
	h.asked <- name + " at " + endpoint + " is gone"
}

// TestRegistration: a plug-in that was there before, one that is refused at first, one of a type that nobody takes, and
// one that goes.
func TestRegistration(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "reg") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d, other := &driver{kind: registerapi.CSIPlugin}, &driver{kind: "Unknown"}
	stop := listen(t, d, filepath.Join(dir, "d.sock"))
	h := &handler{refuse: true, asked: make(chan string, 16)}
	m := &Manager{Dir: dir, Handlers: map[string]Handler{registerapi.CSIPlugin: h}, Period: 10 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	if s := <-d.told; s.PluginRegistered || s.Error != "not yet" {
		t.Errorf("told %v", s)
	}
	if s := <-d.told; !s.PluginRegistered {
		t.Errorf("told %v", s)
	}
	if got := <-h.asked; got != "d at /e of 1.0.0" {
		t.Error(got)
	}
	listen(t, other, filepath.Join(dir, "o.sock"))
	if s := <-other.told; s.PluginRegistered ||
		s.Error != "no handler registered for plugin type: Unknown at socket "+filepath.Join(dir, "o.sock") {
		t.Errorf("told %v", s)
	}
	stop() // takes its socket away
	if got := <-h.asked; got != "d at /e is gone" {
		t.Error(got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A plug-in is found also in a directory that was made again.
func TestTheDirectoryIsMadeAnew(t *testing.T) {
	t.Parallel()
	parent, err := os.MkdirTemp("", "reg") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	dir := filepath.Join(parent, "r")
	h := &handler{asked: make(chan string, 16)}
	m := &Manager{Dir: dir, Handlers: map[string]Handler{registerapi.CSIPlugin: h}, Period: 10 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	listen(t, &driver{kind: registerapi.CSIPlugin}, first(t, dir))
	<-h.asked
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o750)); err != nil {
		t.Fatal(err)
	}
	if got := <-h.asked; got != "d at /e is gone" {
		t.Error(got)
	}
	listen(t, &driver{kind: registerapi.CSIPlugin}, first(t, dir))
	select {
	case <-h.asked:
	case <-time.After(2 * rest):
		t.Error("not found")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// first is the path of a socket in a directory that is there, or is being made.
func first(t *testing.T, dir string) string {
	t.Helper()
	for deadline := time.After(20 * time.Second); ; {
		if _, err := os.Stat(dir); err == nil {
			return filepath.Join(dir, "d.sock")
		}
		select {
		case <-deadline:
			t.Fatal("the directory is not made")
		case <-time.After(time.Millisecond):
		}
	}
}
