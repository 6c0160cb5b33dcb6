package systemd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
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
	scope, own := mark+".scope", ""
	if err := startScope(ctx, scope, dataDir); err != nil {
		return "", fmt.Errorf("ask systemd for the scope %s: %w", scope, err)
	}
	err := host.Poll(ctx, cgroup.RetryBusy, func() (_ bool, err error) {
		own, err = ownGroup("/proc/self/cgroup")
		return filepath.Base(own) == scope, err
	})
	if err != nil {
		return "", fmt.Errorf("wait for the scope %s: %w", scope, err)
	}
	return own, nil
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
func startScope(ctx context.Context, name, dataDir string) error {
	conn, err := dbus.Dial(privateSocket, dbus.WithContext(ctx))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal("0")}); err != nil {
		return err
	}
	type property struct {
		Name  string
		Value dbus.Variant
	}
	type auxiliary struct {
		Name       string
		Properties []property
	}
	properties := []property{
		{"Description", dbus.MakeVariant("Bonsai cluster in " + dataDir)},
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
