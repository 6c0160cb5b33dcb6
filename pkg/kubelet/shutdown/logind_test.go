package shutdown

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// fakeLogind answers for logind and systemd on a bus of the test's own.
type fakeLogind struct {
	bus   *dbus.Conn
	delay uint64 // µs
	dir   string
	held  chan *os.File // our end of the pipe whose other end the inhibitor is
}

// Inhibit is logind's method.
func (f *fakeLogind) Inhibit(what, who, _, mode string) (dbus.UnixFD, *dbus.Error) {
	if what != "shutdown" || who != "kubelet" || mode != "delay" {
		return 0, dbus.MakeFailedError(errors.New(what + who + mode))
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	f.held <- r
	return dbus.UnixFD(w.Fd()), nil
}

// Get is that of its properties.
func (f *fakeLogind) Get(_, name string) (dbus.Variant, *dbus.Error) {
	if name != "InhibitDelayMaxUSec" {
		return dbus.Variant{}, dbus.MakeFailedError(errors.New(name))
	}
	return dbus.MakeVariant(f.delay), nil
}

// KillUnit is systemd's: logind reads its configuration.
func (f *fakeLogind) KillUnit(unit, _ string, _ int32) *dbus.Error {
	text, err := os.ReadFile(filepath.Join(f.dir, overrideFile))
	if err != nil || unit != "systemd-logind.service" {
		return dbus.MakeFailedError(errors.Join(err, errors.New(unit)))
	}
	if strings.Contains(string(text), "\nInhibitDelayMaxSec=30\n") {
		f.delay = 30_000_000
	}
	return nil
}

// privateBus starts a bus of the test's own, and returns its address.
func privateBus(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("there is no dbus-daemon:", err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--session", "--nofork", "--print-address",
		"--address=unix:path="+filepath.Join(t.TempDir(), "bus"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func TestLogind(t *testing.T) {
	t.Parallel()
	address := privateBus(t)
	connect := func() *dbus.Conn {
		c, err := dbus.Connect(address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	f := &fakeLogind{bus: connect(), delay: 5_000_000, dir: t.TempDir(), held: make(chan *os.File, 1)}
	for _, x := range []struct{ path, name string }{{logindPath, logindType},
		{logindPath, "org.freedesktop.DBus.Properties"}, {systemdPath, systemdType}} {
		if err := f.bus.Export(f, dbus.ObjectPath(x.path), x.name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{logindName, systemdName} {
		if _, err := f.bus.RequestName(name, 0); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l := logind{bus: connect(), dir: f.dir}
	if d, err := l.Delay(ctx); err != nil || d != 5*time.Second {
		t.Error(d, err)
	}
	if err := l.Extend(ctx, 29500*time.Millisecond); err != nil {
		t.Error(err)
	}
	if d, err := l.Delay(ctx); err != nil || d != 30*time.Second {
		t.Error(d, err)
	}
	coming, err := l.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := l.Inhibit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, down := range []bool{true, false} {
		if err := f.bus.Emit(logindPath, logindType+"."+prepare, down); err != nil {
			t.Fatal(err)
		}
		if got, ok := <-coming; !ok || got != down {
			t.Error(got, ok)
		}
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	(<-f.held).Close()
	if err := l.bus.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := <-coming; ok {
		t.Error("told of something after the connection's end")
	}
}
