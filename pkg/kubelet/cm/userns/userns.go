// Package userns gives pods that ask for it (hostUsers: false) users of their own: a range of the node's user and group
// ids that no other pod has and that stands for the pod's ids from 0 on
// (https://kubernetes.io/docs/concepts/workloads/pods/user-namespaces/). What a pod has is in the file userns in its
// directory, as other kubelets write it, and so outlives the kubelet.
package userns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/runtime"
)

// fileName is that of the file in a pod's directory.
const fileName = "userns"

// Config is what a Manager needs.
type Config struct {
	// PodsDir is the directory of all pods' directories, /var/lib/kubelet/pods.
	PodsDir string
	// Ranges are what there is to give.
	Ranges Ranges
}

// Manager knows which pod has which range. It is safe for concurrent use.
type Manager struct {
	cfg Config

	mu    sync.Mutex
	given map[types.UID]runtime.IDRange
	// unknown are the pods whose files cannot be read, and why: until they have ended, and the files with them, nothing
	// is given that might be theirs.
	unknown map[types.UID]error
}

var (
	_ cm.Provider        = (*Manager)(nil)
	_ cm.Preparer        = (*Manager)(nil)
	_ cm.SandboxProvider = (*Manager)(nil)
)

// New finds what pods were given by earlier lives of the kubelet.
func New(cfg Config) (*Manager, error) {
	if err := cfg.Ranges.check(); err != nil {
		return nil, err
	}
	m := &Manager{cfg: cfg, given: map[types.UID]runtime.IDRange{}, unknown: map[types.UID]error{}}
	files, err := filepath.Glob(filepath.Join(cfg.PodsDir, "*", fileName))
	if err != nil {
		return nil, fmt.Errorf("look for pods with users of their own: %w", err)
	}
	for _, f := range files {
		uid := types.UID(filepath.Base(filepath.Dir(f)))
		r, err := read(f)
		if err != nil {
			m.unknown[uid] = err
			continue
		}
		m.given[uid] = r
	}
	return m, nil
}

func read(file string) (runtime.IDRange, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return runtime.IDRange{}, fmt.Errorf("read which users a pod has: %w", err)
	}
	r, err := decode(data)
	if err != nil {
		return runtime.IDRange{}, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// FailedReason implements cm.Preparer.
func (m *Manager) FailedReason() string { return "FailedCreatePodSandBox" }

// Prepare implements cm.Preparer.
func (m *Manager) Prepare(_ context.Context, pod *corev1.Pod) error {
	if !runtime.OwnUsers(pod) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, has := m.given[pod.UID]; has {
		return nil
	}
	r, err := m.free()
	if err != nil {
		return fmt.Errorf("Failed to create pod sandbox: %w", err)
	}
	if err := m.write(pod.UID, r); err != nil {
		return fmt.Errorf("Failed to create pod sandbox: %w", err)
	}
	m.given[pod.UID] = r
	return nil
}

// free is the first range that shares no id with one that a pod has, also of pods that were given theirs under other
// settings. The lock is held.
func (m *Manager) free() (runtime.IDRange, error) {
	for _, why := range m.unknown {
		return runtime.IDRange{}, why
	}
	for i := range m.cfg.Ranges.Count {
		r := m.cfg.Ranges.at(i)
		taken := false
		for _, g := range m.given {
			taken = taken || uint64(r.First) < uint64(g.First)+uint64(g.Length) &&
				uint64(g.First) < uint64(r.First)+uint64(r.Length)
		}
		if !taken {
			return r, nil
		}
	}
	return runtime.IDRange{},
		fmt.Errorf("could not find an empty slot to allocate a user namespace: all %d are in use", m.cfg.Ranges.Count)
}

func (m *Manager) write(uid types.UID, r runtime.IDRange) error {
	dir, err := m.dir(uid)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the pod's directory: %w", err)
	}
	data, err := encode(r)
	if err != nil {
		return err
	}
	return cm.StateFile{Dir: dir, Name: fileName}.Write(data)
}

// dir is a pod's directory.
func (m *Manager) dir(uid types.UID) (string, error) {
	if s := string(uid); s == "" || !filepath.IsLocal(s) || filepath.Base(s) != s {
		return "", fmt.Errorf("pod UID %q is no file name", uid)
	}
	return filepath.Join(m.cfg.PodsDir, string(uid)), nil
}

// Sandbox implements cm.SandboxProvider. The sandbox's containers have the pod's users through it.
func (m *Manager) Sandbox(pod *corev1.Pod, o *runtime.SandboxOptions) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, has := m.given[pod.UID]; has {
		o.Users = &r
	}
}

// Unprepare implements cm.Provider.
func (m *Manager) Unprepare(_ context.Context, uid types.UID) error {
	dir, err := m.dir(uid)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := os.Remove(filepath.Join(dir, fileName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("take the pod's users back: %w", err)
	}
	delete(m.given, uid)
	delete(m.unknown, uid)
	return nil
}

// Prepared implements cm.Provider.
func (m *Manager) Prepared() ([]types.UID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(m.given)), maps.Keys(m.unknown)), nil
}

// mappings are the content of the file.
type mappings struct {
	UIDMappings []mapping `json:"uidMappings"`
	GIDMappings []mapping `json:"gidMappings"`
}

type mapping struct {
	HostID      uint32 `json:"hostId"`
	ContainerID uint32 `json:"containerId"`
	Length      uint32 `json:"length"`
}

func encode(r runtime.IDRange) ([]byte, error) {
	all := []mapping{{HostID: r.First, Length: r.Length}}
	data, err := json.Marshal(mappings{all, all})
	if err != nil {
		return nil, fmt.Errorf("encode which users a pod has: %w", err)
	}
	return data, nil
}

func decode(data []byte) (runtime.IDRange, error) {
	var m mappings
	if err := json.Unmarshal(data, &m); err != nil {
		return runtime.IDRange{}, fmt.Errorf("decode which users a pod has: %w", err)
	}
	if len(m.UIDMappings) != 1 || len(m.GIDMappings) != 1 || m.UIDMappings[0] != m.GIDMappings[0] ||
		m.UIDMappings[0].ContainerID != 0 || m.UIDMappings[0].Length == 0 {
		return runtime.IDRange{},
			errors.New("the pod's users are not one range of ids from 0 on, the same for users and groups")
	}
	return runtime.IDRange{First: m.UIDMappings[0].HostID, Length: m.UIDMappings[0].Length}, nil
}
