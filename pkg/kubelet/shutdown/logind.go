package shutdown

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
)

// Names of logind and systemd on the bus
// (https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.login1.html).
const (
	logindName   = "org.freedesktop.login1"
	logindPath   = "/org/freedesktop/login1"
	logindType   = "org.freedesktop.login1.Manager"
	systemdName  = "org.freedesktop.systemd1"
	systemdPath  = "/org/freedesktop/systemd1"
	systemdType  = "org.freedesktop.systemd1.Manager"
	prepare      = "PrepareForShutdown"
	overrideFile = "99-kubelet.conf"
)

// logind is the machine's manager by systemd's logind.
type logind struct {
	// bus is the connection; dir is where logind reads additions to its configuration, /etc/systemd/logind.conf.d.
	bus *dbus.Conn
	dir string
}

var _ Machine = logind{}

// ConnectSystemBus finds logind on the system's bus.
func ConnectSystemBus(ctx context.Context) (Machine, func() error, error) {
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the system bus: %w", err)
	}
	return logind{bus: bus, dir: "/etc/systemd/logind.conf.d"}, bus.Close, nil
}

func (l logind) object() dbus.BusObject { return l.bus.Object(logindName, logindPath) }

// Delay implements Machine: InhibitDelayMaxSec.
func (l logind) Delay(ctx context.Context) (time.Duration, error) {
	var v dbus.Variant
	if err := l.object().CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, logindType,
		"InhibitDelayMaxUSec").Store(&v); err != nil {
		return 0, fmt.Errorf("ask logind how long it waits: %w", err)
	}
	us, ok := v.Value().(uint64)
	if !ok {
		return 0, fmt.Errorf("logind's InhibitDelayMaxUSec is a %T", v.Value())
	}
	return time.Duration(min(us, math.MaxInt64/1000)) * time.Microsecond, nil
}

// Extend implements Machine: it adds to logind's configuration and makes logind read it.
func (l logind) Extend(ctx context.Context, to time.Duration) error {
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of logind's configuration: %w", err)
	}
	text := fmt.Sprintf("# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=%.0f\n", math.Ceil(to.Seconds()))
	if err := os.WriteFile(filepath.Join(l.dir, overrideFile), []byte(text), 0o644); err != nil {
		return fmt.Errorf("write logind's configuration: %w", err)
	}
	call := l.bus.Object(systemdName, systemdPath).CallWithContext(ctx, systemdType+".KillUnit", 0,
		"systemd-logind.service", "all", int32(syscall.SIGHUP))
	if call.Err != nil {
		return fmt.Errorf("have logind read its configuration: %w", call.Err)
	}
	return nil
}

// inhibitor is logind's lock: it holds as long as the file is open.
type inhibitor struct{ *os.File }

// Release implements Lock.
func (i inhibitor) Release() error { return i.Close() }

// Inhibit implements Machine.
func (l logind) Inhibit(ctx context.Context) (Lock, error) {
	var fd dbus.UnixFD
	err := l.object().CallWithContext(ctx, logindType+".Inhibit", 0, "shutdown", "kubelet",
		"Kubelet needs time to handle node shutdown", "delay").Store(&fd)
	if err != nil {
		return nil, fmt.Errorf("hold logind's shutdown up: %w", err)
	}
	return inhibitor{os.NewFile(uintptr(fd), "inhibit")}, nil
}

// Watch implements Machine.
func (l logind) Watch(ctx context.Context) (<-chan bool, error) {
	err := l.bus.AddMatchSignalContext(ctx, dbus.WithMatchInterface(logindType), dbus.WithMatchMember(prepare),
		dbus.WithMatchObjectPath(logindPath))
	if err != nil {
		return nil, fmt.Errorf("watch logind's shutdown: %w", err)
	}
	signals, out := make(chan *dbus.Signal, 1), make(chan bool)
	l.bus.Signal(signals) // closed with the connection, which ends with ctx
	go func() {
		defer close(out)
		for s := range signals {
			if s.Name != logindType+"."+prepare || len(s.Body) == 0 {
				continue
			}
			if down, ok := s.Body[0].(bool); ok {
				select {
				case out <- down:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out, nil
}
