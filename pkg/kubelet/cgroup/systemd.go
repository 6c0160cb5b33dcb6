package cgroup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"time"

	"github.com/godbus/dbus/v5"
)

// With the driver systemd the cgroups of pods are systemd's slices. systemd owns the whole tree: it writes a slice's
// values whenever it likes (daemon-reload does it), and takes what it was not told for its defaults. So it must know
// each slice, with all its limits, and forget the slice with the pod.

// units are the slices of systemd.
type units interface {
	// start starts the slice, unless it runs, and gives it the properties. It returns when the cgroup is there.
	start(ctx context.Context, slice string, properties []property) error
	// change gives a slice that runs the properties.
	change(ctx context.Context, slice string, properties []property) error
	// stop ends the slice and what is in it. One that does not run is no error.
	stop(ctx context.Context, slice string) error
}

// property is one of a unit (org.freedesktop.systemd1(5)).
type property struct {
	Name  string
	Value dbus.Variant
}

// systemdPatience bounds one job of systemd.
const systemdPatience = 30 * time.Second

// Names of systemd on its bus.
const (
	systemdSocket  = "unix:path=/run/systemd/private"
	systemdName    = "org.freedesktop.systemd1"
	systemdPath    = "/org/freedesktop/systemd1"
	systemdManager = "org.freedesktop.systemd1.Manager"
)

// systemdUnits speaks to the machine's systemd on its private socket, which needs no bus. Each operation has a
// connection of its own: systemd closes all of them when it is executed again (an upgrade), and one costs little
// beside what it is for.
type systemdUnits struct{ socket string }

var _ units = systemdUnits{}

// newSystemd refuses a machine on which nobody would take the slices up.
func newSystemd(running string) (units, error) {
	if info, err := os.Stat(running); err != nil || !info.IsDir() {
		return nil, errors.New("systemd not running on this host: cannot use systemd cgroups manager " +
			"(set cgroupDriver: cgroupfs)")
	}
	return systemdUnits{systemdSocket}, nil
}

func (s systemdUnits) start(ctx context.Context, slice string, properties []property) error {
	ctx, cancel := context.WithTimeout(ctx, systemdPatience)
	defer cancel()
	first := append([]property{
		{"Description", dbus.MakeVariant("Pods of the kubelet: " + slice)},
		{"DefaultDependencies", dbus.MakeVariant(false)},
		{"CPUAccounting", dbus.MakeVariant(true)},
		{"MemoryAccounting", dbus.MakeVariant(true)},
		{"IOAccounting", dbus.MakeVariant(true)},
		{"TasksAccounting", dbus.MakeVariant(true)},
	}, properties...)
	type auxiliary struct {
		Name       string
		Properties []property
	}
	err := s.job(ctx, "StartTransientUnit", slice, "replace", first, []auxiliary{})
	if isSystemd(err, "UnitExists") {
		return s.change(ctx, slice, properties)
	}
	if err != nil {
		return fmt.Errorf("have systemd start the slice %s: %w", slice, err)
	}
	return nil
}

// change is at once: systemd writes the files before it answers. The properties last as long as the machine runs.
func (s systemdUnits) change(ctx context.Context, slice string, properties []property) error {
	if len(properties) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, systemdPatience)
	defer cancel()
	conn, err := s.dial(ctx)
	if err == nil {
		defer conn.Close()
		err = conn.Object(systemdName, systemdPath).CallWithContext(ctx, systemdManager+".SetUnitProperties", 0, slice,
			true, properties).Err
	}
	if err != nil {
		return fmt.Errorf("have systemd change the slice %s: %w", slice, err)
	}
	return nil
}

func (s systemdUnits) stop(ctx context.Context, slice string) error {
	ctx, cancel := context.WithTimeout(ctx, systemdPatience)
	defer cancel()
	if err := s.job(ctx, "StopUnit", slice, "replace"); err != nil && !isSystemd(err, "NoSuchUnit") {
		return fmt.Errorf("have systemd stop the slice %s: %w", slice, err)
	}
	return nil
}

// isSystemd reports whether systemd answered with that error.
func isSystemd(err error, name string) bool {
	answer, is := errors.AsType[dbus.Error](err)
	return is && answer.Name == systemdName+"."+name
}

// dial returns a connection. The handler keeps the order of signals and loses none.
func (s systemdUnits) dial(ctx context.Context) (*dbus.Conn, error) {
	conn, err := dbus.Dial(s.socket, dbus.WithContext(ctx), dbus.WithSignalHandler(dbus.NewSequentialSignalHandler()))
	if err != nil {
		return nil, err
	}
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal("0")}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// job calls a method that begins a job, and waits for the job's end. systemd sends whoever began a job its end.
func (s systemdUnits) job(ctx context.Context, method string, args ...any) error {
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ended := make(chan *dbus.Signal, 16)
	conn.Signal(ended)
	var job dbus.ObjectPath
	if err := conn.Object(systemdName, systemdPath).CallWithContext(ctx, systemdManager+"."+method, 0,
		args...).Store(&job); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: systemd does not end the job: %w", method, context.Cause(ctx))
		case signal, open := <-ended:
			if !open {
				return fmt.Errorf("%s: systemd has closed the connection", method)
			}
			// JobRemoved: its number, the job, the unit, the result
			if signal.Name != systemdManager+".JobRemoved" || len(signal.Body) < 4 || signal.Body[1] != job {
				continue
			}
			if result := signal.Body[3]; result != "done" {
				return fmt.Errorf("%s: the result of systemd's job is %v", method, result)
			}
			return nil
		}
	}
}

// properties returns the values as systemd's. It is pure. A value that is 0 is in none: systemd keeps what it has.
func (v values) properties(v2 bool) []property {
	var out []property
	add := func(name string, n uint64) { out = append(out, property{name, dbus.MakeVariant(n)}) }
	switch {
	case v.cpuShares > 0 && v2:
		add("CPUWeight", weight(v.cpuShares))
	case v.cpuShares > 0:
		add("CPUShares", v.cpuShares)
	}
	switch {
	case v.cpuQuota < 0:
		add("CPUQuotaPerSecUSec", math.MaxUint64)
	case v.cpuQuota > 0:
		add("CPUQuotaPerSecUSec", quotaPerSecond(v.cpuQuota, v.period()))
		if v.period() != usualPeriod { // systemd has known it since version 242
			add("CPUQuotaPeriodUSec", uint64(v.period()))
		}
	}
	limit := "MemoryLimit"
	if v2 {
		limit = "MemoryMax"
	}
	switch {
	case v.memory < 0:
		add(limit, math.MaxUint64)
	case v.memory > 0:
		add(limit, uint64(v.memory))
	}
	if v2 && v.protected != nil {
		add("MemoryMin", uint64(v.protected.Min))
		add("MemoryLow", uint64(v.protected.Low))
	}
	switch {
	case v2 && v.high > 0:
		add("MemoryHigh", uint64(v.high))
	case v2 && v.high < 0:
		add("MemoryHigh", math.MaxUint64)
	}
	if v2 && (v.swap > 0 || v.noSwap) {
		add("MemorySwapMax", uint64(v.swap))
	}
	if v.pids > 0 {
		add("TasksMax", uint64(v.pids))
	}
	return out
}

// quotaPerSecond converts a quota per period into systemd's, in µs per second. systemd counts in hundredths of a CPU:
// it would round a smaller part down, and the pod had less than its limit until the file is written.
func quotaPerSecond(quota, period int64) uint64 {
	const hundredth = 10_000
	us := uint64(quota * 1_000_000 / period)
	return (us + hundredth - 1) / hundredth * hundredth
}

// make makes the cgroup, unless it is there, and gives it the values. systemd knows no huge pages and rounds quotas, so
// all values are written to the files too.
func (m *Manager) make(ctx context.Context, cgroup string, v values) error {
	if m.units != nil {
		if err := m.units.start(ctx, path.Base(cgroup), v.properties(m.tree.v2)); err != nil {
			return err
		}
	}
	if err := m.tree.create(cgroup); err != nil {
		return err
	}
	return m.tree.apply(cgroup, v)
}

// change gives a cgroup that is there the values.
func (m *Manager) change(ctx context.Context, cgroup string, v values) error {
	if m.units != nil {
		if err := m.units.change(ctx, path.Base(cgroup), v.properties(m.tree.v2)); err != nil {
			return err
		}
	}
	return m.tree.apply(cgroup, v)
}

// remove kills what is left in the cgroup and removes it. systemd forgets the slice last: it would give the processes
// time to end, and wait for them.
func (m *Manager) remove(ctx context.Context, cgroup string) error {
	if err := m.tree.remove(ctx, cgroup); err != nil || m.units == nil {
		return err
	}
	return m.units.stop(ctx, path.Base(cgroup))
}
