// Package cgroup makes the control groups of pods: kubepods, in it burstable and besteffort, and one for each pod, in
// which the runtime puts the containers. The values are computed by pure functions (values.go). Version 1 (and hybrid)
// and version 2 differ only in the files that are written (hierarchy.go).
//
// The layout and the values: https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/ and the design proposal
// "pod-resource-management".
package cgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/cpuquota"
	"bonsai/pkg/kubelet/memoryqos"
)

// ownMounts lists the mounts that this process sees.
const ownMounts = "/proc/self/mountinfo"

// Config is what a Manager needs. Log is required.
type Config struct {
	// Root is the cgroup that all others are made in, "/" by default (--cgroup-root). Two kubelets under one kernel
	// need different ones, or each would remove the other's pods.
	Root string
	// Driver is DriverCgroupfs (default) or DriverSystemd; it must be the runtime's.
	Driver string
	// Limit bounds all pods together: CPU as shares, memory and pid as limits. Resources without an entry are not
	// bounded.
	Limit corev1.ResourceList
	// Reserved are the cgroups of the system and of the kubelet, with their limits.
	Reserved []Reserved
	// PodPidsLimit is the most processes a pod may have, 0 for no limit.
	PodPidsLimit int64
	// Swap is the swap that pods may use; none by default.
	Swap Swap
	// Reserve keeps the memory that pods have requested from pods of lower classes; by default none.
	Reserve Reserve
	// CPU is how limits of CPU are kept.
	CPU cpuquota.Quota
	// Memory is how memory is protected and throttled, with cgroup v2.
	Memory memoryqos.QoS
	// Protected, if set, hears how much memory of pods is protected.
	Protected func(memoryqos.Protection)
	// NoQuota, if set, reports whether a pod has no quota of CPU, because containers of it have CPUs for themselves.
	NoQuota func(pod *corev1.Pod) bool
	// running is the directory that shows that systemd is the machine's init; /run/systemd/system by default.
	running string
	// mountinfo is the file that lists the hierarchies; /proc/self/mountinfo by default.
	mountinfo string
	// Observe, if set, receives how long it took to make (create), change (update) or remove (destroy) the cgroup of a
	// pod or of a QoS class.
	Observe func(operation string, took time.Duration)
	Log     *slog.Logger
}

// Reserved is a cgroup that somebody else has made for processes outside pods.
type Reserved struct {
	// Name is a path, or the name of a systemd slice, from the top of the hierarchies.
	Name  string
	Limit corev1.ResourceList
}

// Manager makes and removes cgroups. It keeps no state, and so needs no lock: what exists is what the kernel shows.
type Manager struct {
	cfg   Config
	names naming
	tree  *tree
	// units are systemd's slices, nil with the other driver.
	units units
}

// New checks the configuration and finds the hierarchies; it changes nothing.
func New(cfg Config) (*Manager, error) {
	if cfg.Log == nil {
		return nil, errors.New("cgroup: Log is required")
	}
	if cfg.Driver == "" {
		cfg.Driver = DriverCgroupfs
	}
	if cfg.mountinfo == "" {
		cfg.mountinfo = ownMounts
	}
	names, err := newNaming(cfg.Root, cfg.Driver)
	if err != nil {
		return nil, err
	}
	t, err := findTree(cfg.mountinfo)
	if err != nil {
		return nil, err
	}
	if cfg.Swap.Limited && !t.v2 {
		return nil, errSwapVersion
	}
	m := &Manager{cfg: cfg, names: names, tree: t}
	if names.systemd {
		if m.units, err = newSystemd(cmp.Or(cfg.running, "/run/systemd/system")); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Version is 1 or 2.
func (m *Manager) Version() int { return m.tree.version() }

// Version returns the version of this machine's cgroups, 1 or 2.
func Version() (int, error) {
	t, err := findTree(ownMounts)
	if err != nil {
		return 0, err
	}
	return t.version(), nil
}

// Setup makes the cgroups that hold all pods. It may be called again, on those of an earlier kubelet.
func (m *Manager) Setup(ctx context.Context) error {
	class := values{cpuShares: minShares}
	if m.cfg.Reserve.Percent == 0 {
		class.memory = -1 // an earlier kubelet may have limited it
	}
	for _, g := range []struct {
		parts  []string
		values values
	}{
		{[]string{"kubepods"}, forList(m.cfg.Limit)},
		{[]string{"kubepods", "burstable"}, class},
		{[]string{"kubepods", "besteffort"}, class},
	} {
		if err := m.make(ctx, m.names.path(g.parts...), g.values); err != nil {
			return err
		}
	}
	return m.enforceReserved(ctx)
}

// enforceReserved bounds the reserved cgroups. A missing one is an error: nothing would enforce the reservation.
func (m *Manager) enforceReserved(ctx context.Context) error {
	for _, r := range m.cfg.Reserved {
		p := naming{systemd: m.names.systemd}.path(strings.FieldsFunc(r.Name, func(c rune) bool { return c == '/' })...)
		if _, err := os.Stat(m.tree.file("memory", p, "")); err != nil {
			return fmt.Errorf("bound the cgroup of what is reserved: %q cgroup does not exist: %w", r.Name, err)
		}
		v := forList(r.Limit)
		if m.cfg.Memory.Protect {
			v.protected = &memoryqos.Protection{Min: v.memory}
		}
		if err := m.change(ctx, p, v); err != nil {
			return err
		}
	}
	return nil
}

// UpdateQoS gives the cgroup of all burstable pods the sum of their CPU requests, and the classes their limits of
// memory if some is reserved for better ones. What is protected of pods' memory is protected of their class's and of
// all pods', too: the kernel protects no more of a cgroup than of those around it. It is called when the set of the
// node's pods changes, and now and then.
func (m *Manager) UpdateQoS(ctx context.Context, pods []*corev1.Pod) error {
	defer m.observe("update", time.Now())
	burstable, bestEffort := forBurstable(pods), values{}
	if m.cfg.Reserve.Percent > 0 {
		burstable.memory, bestEffort.memory = m.cfg.Reserve.limits(pods)
	}
	sum := m.cfg.protection(pods)
	if m.cfg.Protected != nil {
		m.cfg.Protected(sum)
	}
	burstable.protected = &memoryqos.Protection{Low: sum.Low}
	all := values{protected: &memoryqos.Protection{Min: sum.Min + sum.Low, Low: sum.Low}}
	return errors.Join(m.change(ctx, m.names.path("kubepods"), all),
		m.limitClass(ctx, "burstable", burstable), m.limitClass(ctx, "besteffort", bestEffort))
}

// observe reports how long an operation took that began at begun.
func (m *Manager) observe(operation string, begun time.Time) {
	if m.cfg.Observe != nil {
		m.cfg.Observe(operation, time.Since(begun))
	}
}

// limitsSwap reports whether the kernel accounts the swap of a cgroup, and so can limit it. It is called after Setup.
func (m *Manager) limitsSwap() bool {
	file := memsw
	if m.tree.v2 {
		file = "memory.swap.max"
	}
	path := m.tree.file("memory", m.names.path("kubepods"), file)
	if path == "" {
		return false
	}
	_, err := os.Stat(path)
	return err == nil
}

// checkUID refuses a UID that would name another directory: static pods choose theirs.
func checkUID(uid types.UID) error {
	if s := string(uid); s == "" || strings.ContainsAny(s, "/\x00") || s == ".." {
		return fmt.Errorf("pod UID %q cannot name a cgroup", uid)
	}
	return nil
}
