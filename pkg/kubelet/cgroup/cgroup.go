// Package cgroup makes the control groups of pods: kubepods, in it burstable and besteffort, and one for each pod, in which
// the runtime puts the containers. What each gets is computed by pure functions (values.go); version 1 (and hybrid) and version 2
// differ only in the files that are written (hierarchy.go).
//
// The layout and the values: https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/ and the design proposal
// "pod-resource-management".
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Config is what a Manager needs. Log is required.
type Config struct {
	// Root is the cgroup all others are made in, "/" by default (--cgroup-root). Two kubelets of one kernel need different ones.
	Root string
	// Driver is DriverCgroupfs (default) or DriverSystemd; it must be the runtime's.
	Driver string
	// Allocatable bounds all pods together: CPU as shares, memory as a limit. Nil sets neither.
	Allocatable corev1.ResourceList
	// PodPidsLimit is the most processes a pod may have, 0 for no limit.
	PodPidsLimit int64
	// Mountinfo tells where the hierarchies are; /proc/self/mountinfo by default.
	Mountinfo string
	Log       *slog.Logger
}

// Manager makes and removes cgroups. It keeps no state: what exists is what the kernel shows.
type Manager struct {
	cfg   Config
	names naming
	tree  *tree
}

// New checks the configuration and finds the hierarchies; it changes nothing.
func New(cfg Config) (*Manager, error) {
	if cfg.Log == nil {
		return nil, errors.New("cgroup: Log is required")
	}
	if cfg.Driver == "" {
		cfg.Driver = DriverCgroupfs
	}
	if cfg.Mountinfo == "" {
		cfg.Mountinfo = "/proc/self/mountinfo"
	}
	names, err := newNaming(cfg.Root, cfg.Driver)
	if err != nil {
		return nil, err
	}
	t, err := findTree(cfg.Mountinfo)
	if err != nil {
		return nil, err
	}
	return &Manager{cfg: cfg, names: names, tree: t}, nil
}

// Version is 1 or 2.
func (m *Manager) Version() int {
	if m.tree.v2 {
		return 2
	}
	return 1
}

// Setup makes the cgroups that hold all pods.
func (m *Manager) Setup() error {
	all := Values{CPUQuota: 0}
	if a := m.cfg.Allocatable; a != nil {
		all = Values{CPUShares: Shares(a.Cpu().MilliValue()), Memory: a.Memory().Value()}
	}
	for _, g := range []struct {
		parts  []string
		values Values
	}{
		{[]string{"kubepods"}, all},
		{[]string{"kubepods", "burstable"}, Values{CPUShares: minShares}},
		{[]string{"kubepods", "besteffort"}, Values{CPUShares: minShares}},
	} {
		p := m.names.path(g.parts...)
		if err := m.tree.create(p); err != nil {
			return err
		}
		if err := m.tree.apply(p, g.values); err != nil {
			return err
		}
	}
	return nil
}

// UpdateQoS gives burstable pods together the CPU they request, as the set of the node's pods changes.
func (m *Manager) UpdateQoS(pods []*corev1.Pod) error {
	return m.tree.apply(m.names.path("kubepods", "burstable"), ForBurstable(pods))
}

// CreatePod makes the pod's cgroup, or brings its values up to date, and returns what CRI calls the cgroup parent.
func (m *Manager) CreatePod(pod *corev1.Pod) (string, error) {
	if err := checkUID(pod.UID); err != nil {
		return "", err
	}
	p := m.names.path(podParts(runtime.QOSClass(pod), pod.UID)...)
	if err := m.tree.create(p); err != nil {
		return "", err
	}
	if err := m.tree.apply(p, ForPod(pod, m.cfg.PodPidsLimit)); err != nil {
		return "", err
	}
	return m.names.parent(p), nil
}

// Swap tells whether the kernel accounts, and so can limit, the swap of a cgroup. It is asked after Setup.
func (m *Manager) Swap() bool {
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

// RemovePod kills what is left of the pod and removes its cgroup, of whatever class it was. A pod without one is fine.
func (m *Manager) RemovePod(ctx context.Context, uid types.UID) error {
	if err := checkUID(uid); err != nil {
		return err
	}
	var errs []error
	for _, class := range []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort} {
		errs = append(errs, m.tree.remove(ctx, m.names.path(podParts(class, uid)...)))
	}
	return errors.Join(errs...)
}

// Pods returns the UIDs of all pods that have a cgroup.
func (m *Manager) Pods() []types.UID {
	seen := map[types.UID]bool{}
	var out []types.UID
	for _, mount := range m.tree.mounts {
		for _, parts := range [][]string{{"kubepods"}, {"kubepods", "burstable"}, {"kubepods", "besteffort"}} {
			entries, err := os.ReadDir(filepath.Join(mount, m.names.path(parts...)))
			if err != nil {
				continue // not made yet
			}
			for _, e := range entries {
				if uid, ok := m.names.uid(path.Base(e.Name())); ok && e.IsDir() && !seen[uid] {
					seen[uid] = true
					out = append(out, uid)
				}
			}
		}
	}
	return out
}

// Reconcile removes the cgroups of pods that need none any more, with their processes. whenEnded is asked for each at the moment of
// its removal: it does f if the pod's containers have ended, and keeps the pod from beginning anew until f is done.
func (m *Manager) Reconcile(ctx context.Context, whenEnded func(uid types.UID, f func() error) error) error {
	var errs []error
	for _, uid := range m.Pods() {
		errs = append(errs, whenEnded(uid, func() error {
			if err := m.RemovePod(ctx, uid); err != nil {
				return err
			}
			m.cfg.Log.Info("removed the cgroup of a pod that is gone", "uid", uid)
			return nil
		}))
	}
	return errors.Join(errs...)
}

func checkUID(uid types.UID) error {
	if s := string(uid); s == "" || strings.ContainsAny(s, "/\x00") || s == ".." {
		return fmt.Errorf("pod UID %q cannot name a cgroup", uid)
	}
	return nil
}
