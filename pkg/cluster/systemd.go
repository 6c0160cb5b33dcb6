package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/plan"
)

const (
	// systemdSocket is where systemd answers root without a bus, which a small machine may not have.
	systemdSocket = "unix:path=/run/systemd/private"
	systemdName   = "org.freedesktop.systemd1"
	systemdPath   = "/org/freedesktop/systemd1"
	// scopePatience is how long systemd may take to make a scope, and to forget that of an earlier life.
	scopePatience = 20 * time.Second
)

// systemdRuns reports whether systemd is the machine's init (sd_booted(3)).
func systemdRuns() bool {
	info, err := os.Stat("/run/systemd/system")
	return err == nil && info.IsDir()
}

// scopeGroup returns the group of cgroup v2 below which this process, a supervisor, may make the cluster's. Where
// systemd runs, the tree is systemd's, which is asked for a scope for this process, and delegates its group.
func scopeGroup(ctx context.Context, c plan.Config) (string, error) {
	if !cgroup.IsUnified() || !systemdRuns() {
		return cgroup.Root, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, scopePatience, errors.New("systemd does not answer in time"))
	defer cancel()
	scope, own := c.Mark()+".scope", ""
	if err := startScope(ctx, scope, c.DataDir); err != nil {
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

// serviceGroup is scopeGroup for a process that systemd has started as a service: the service's own group, which the
// unit must delegate.
func serviceGroup(ctx context.Context, c plan.Config) (string, error) {
	if !cgroup.IsUnified() || !systemdRuns() {
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
	return scopeGroup(ctx, c) // started from a shell
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

// isDelegated reports whether systemd leaves what is below a group to others.
func isDelegated(group string) bool {
	value := make([]byte, 8)
	n, err := unix.Getxattr(group, "trusted.delegate", value)
	return err == nil && string(value[:n]) == "1"
}

// startScope has systemd move this process into a scope of its own, whose group it leaves to us. The scope goes with
// its last process.
func startScope(ctx context.Context, name, dataDir string) error {
	conn, err := dbus.Dial(systemdSocket, dbus.WithContext(ctx))
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
		call := conn.Object(systemdName, systemdPath).CallWithContext(ctx, systemdName+".Manager.StartTransientUnit", 0,
			name, "fail", properties, []auxiliary{})
		var refused dbus.Error
		if errors.As(call.Err, &refused) && refused.Name == systemdName+".UnitExists" {
			return false, nil // that of an earlier life, which systemd has not seen the end of
		}
		return call.Err == nil, call.Err
	})
}

// notifier tells systemd how a service is (sd_notify(3)): READY=1 and STATUS=... It does nothing for a process that is
// no service.
type notifier struct{ socket string }

// newNotifier takes the socket that systemd names in the environment, so that no child has it.
func newNotifier() notifier {
	const variable = "NOTIFY_SOCKET"
	n := notifier{os.Getenv(variable)}
	os.Unsetenv(variable)
	return n
}

// notify sends assignments. What systemd is not told changes nothing in the cluster.
func (n notifier) notify(assignments ...string) error {
	if n.socket == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell systemd: %w", err)
	}
	defer conn.Close()
	_, err = conn.Write([]byte(strings.Join(assignments, "\n")))
	return err
}

// status is the assignment of a line that `systemctl status` shows.
func status(text string) string { return "STATUS=" + strings.ReplaceAll(text, "\n", "; ") }
