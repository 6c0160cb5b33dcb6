package systemd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
)

const (
	// privateSocket is where systemd answers root without a bus, which a small machine may not have.
	privateSocket = "unix:path=/run/systemd/private"
	busName       = "org.freedesktop.systemd1"
	busPath       = "/org/freedesktop/systemd1"
	// scopePatience bounds the wait for systemd to make a scope, and before to forget the scope of an earlier life.
	scopePatience = 20 * time.Second
)

// isInit reports whether systemd is the machine's init (sd_booted(3)).
func isInit() bool {
	info, err := os.Stat("/run/systemd/system")
	return err == nil && info.IsDir()
}

// ScopeGroup returns the group of cgroup v2 below which this process, a supervisor, may make the groups of the cluster
// with the mark. Where systemd runs it owns the whole tree, and would move or remove groups that it does not know. So
// this process asks systemd for a scope of its own, whose group systemd delegates to it.
func ScopeGroup(ctx context.Context, mark, dataDir string) (string, error) {
	if !cgroup.IsUnified() || !isInit() {
		return cgroup.Root, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, scopePatience, errors.New("systemd does not answer in time"))
	defer cancel()
	return enterScope(ctx, privateSocket, mark+".scope", "Bonsai cluster in "+dataDir)
}

// UserScope has the systemd of this process's user move this process into a new scope, and returns the scope's group,
// which belongs to the user. runtime is the user's $XDG_RUNTIME_DIR. It waits for the end of a scope of that name.
func UserScope(ctx context.Context, runtime, name, description string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, scopePatience, errors.New("systemd does not answer in time"))
	defer cancel()
	return enterScope(ctx, userSocket(runtime), name, description)
}

// userSocket is where the systemd of a user answers that user.
func userSocket(runtime string) string {
	return "unix:path=" + dbus.EscapeBusAddressValue(filepath.Join(runtime, "systemd", "private"))
}

// Attach has the systemd of this process's user move a process of that user into a group below the one of a unit whose
// groups systemd has delegated.
func Attach(ctx context.Context, runtime, unit, group string, pid int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, scopePatience, errors.New("systemd does not answer in time"))
	defer cancel()
	conn, err := connect(ctx, userSocket(runtime))
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Object(busName, busPath).CallWithContext(ctx, busName+".Manager.AttachProcessesToUnit", 0, unit, group,
		[]uint32{uint32(pid)}).Err
}

// enterScope moves this process into a new scope, and returns the scope's group.
func enterScope(ctx context.Context, socket, scope, description string) (own string, err error) {
	if err := startScope(ctx, socket, scope, description); err != nil {
		return "", fmt.Errorf("ask systemd for the scope %s: %w", scope, err)
	}
	err = host.Poll(ctx, cgroup.RetryBusy, func() (_ bool, err error) {
		own, err = ownGroup("/proc/self/cgroup")
		return filepath.Base(own) == scope, err
	})
	if err != nil {
		return "", fmt.Errorf("wait for the scope %s: %w", scope, err)
	}
	return own, nil
}

// connect connects to the systemd that answers at a socket.
func connect(ctx context.Context, socket string) (*dbus.Conn, error) {
	conn, err := dbus.Dial(socket, dbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// ServiceGroup is ScopeGroup for a process that systemd may have started as a service: then it returns the service's
// own group, which the unit must delegate. A process that was started from a shell gets a scope.
func ServiceGroup(ctx context.Context, mark, dataDir string) (string, error) {
	if !cgroup.IsUnified() || !isInit() {
		return cgroup.Root, nil
	}
	own, err := ownGroup("/proc/self/cgroup")
	switch {
	case err != nil:
		return "", err
	case isDelegated(own):
		return own, nil
	case filepath.Ext(own) == ".service":
		return "", fmt.Errorf("the cgroup %s is not delegated (the unit needs Delegate=yes)", own)
	}
	return ScopeGroup(ctx, mark, dataDir)
}

// ownGroup returns the directory of a process's group on v2, from its cgroup file (cgroups(7)).
func ownGroup(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if path, found := strings.CutPrefix(strings.TrimSpace(line), "0::"); found {
			return filepath.Join(cgroup.Root, path), nil
		}
	}
	return "", fmt.Errorf("%s has no group of cgroup v2", file)
}

// isDelegated reports whether systemd leaves the groups below a group to others. systemd marks such groups with an
// extended attribute.
func isDelegated(group string) bool {
	value := make([]byte, 8)
	n, err := unix.Getxattr(group, "trusted.delegate", value)
	return err == nil && string(value[:n]) == "1"
}

// startScope has systemd move this process into a new scope, whose group it delegates to us. systemd removes the scope
// when its last process has ended.
func startScope(ctx context.Context, socket, name, description string) error {
	conn, err := connect(ctx, socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	type property struct {
		Name  string
		Value dbus.Variant
	}
	type auxiliary struct {
		Name       string
		Properties []property
	}
	properties := []property{
		{"Description", dbus.MakeVariant(description)},
		{"PIDs", dbus.MakeVariant([]uint32{uint32(os.Getpid())})},
		{"Delegate", dbus.MakeVariant(true)},
		{"TasksMax", dbus.MakeVariant(uint64(math.MaxUint64))},
		{"CollectMode", dbus.MakeVariant("inactive-or-failed")},
	}
	return host.Poll(ctx, 10*cgroup.RetryBusy, func() (bool, error) {
		call := conn.Object(busName, busPath).CallWithContext(ctx, busName+".Manager.StartTransientUnit", 0,
			name, "fail", properties, []auxiliary{})
		var refused dbus.Error
		if errors.As(call.Err, &refused) && refused.Name == busName+".UnitExists" {
			return false, nil // the scope of an earlier life, whose end systemd has not seen yet
		}
		return call.Err == nil, call.Err
	})
}
