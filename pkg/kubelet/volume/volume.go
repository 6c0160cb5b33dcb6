// Package volume makes a pod's volumes on the node: emptyDir, hostPath, configMap, secret, downwardAPI and projected. A
// volume lives in <pods>/<uid>/volumes/kubernetes.io~<plugin>/<name>; what comes from the API is written atomically (see
// atomic.go) and follows its source while the pod runs. The package also resolves subPaths beneath their volume and keeps the
// few files a pod has outside its volumes (etc-hosts, termination logs).
//
// The contract with applications: https://kubernetes.io/docs/concepts/storage/volumes/ and projected-volumes.
package volume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Objects reads what volumes are filled with. A missing object is an error for which apierrors.IsNotFound holds.
type Objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// Tokens asks the API server for a service-account token (serviceaccounts/token).
type Tokens interface {
	CreateToken(ctx context.Context, namespace, account string, req *authv1.TokenRequest) (*authv1.TokenRequest, error)
}

// Config is what a Manager needs. All but Period are required.
type Config struct {
	// PodsDir is the directory of all pods' directories, /var/lib/kubelet/pods.
	PodsDir string
	Objects Objects
	Tokens  Tokens
	// Field returns a downward API field of the pod; Resource a request or limit of the named container.
	Field    func(pod *corev1.Pod, path string) (string, error)
	Resource func(pod *corev1.Pod, container string, sel *corev1.ResourceFieldSelector) (string, error)
	// Period is how often Run looks whether a volume's content is out of date, beside being told; 1 minute by default.
	Period time.Duration
	Now    func() time.Time
	Log    *slog.Logger
}

// Mounted is a volume that is ready to be mounted into containers.
type Mounted struct {
	HostPath string
	// ReadOnly volumes are mounted read-only whatever the container asks for: the kubelet owns their content.
	ReadOnly bool
	// Image volumes have no HostPath: the runtime mounts the image itself into each container.
	Image *corev1.ImageVolumeSource
}

// Manager makes and removes volumes. Its methods are safe for concurrent use; work on one pod is done one after the other.
type Manager struct {
	cfg    Config
	tokens *tokenCache
	stale  chan types.UID

	mu   sync.Mutex
	pods map[types.UID]*podVolumes
}

// podVolumes is what the manager remembers of a pod; mu serializes the work on it.
type podVolumes struct {
	mu  sync.Mutex
	pod *corev1.Pod // as last mounted; nil: unmounted
	// newer is a version of the pod to be mounted next, nil if there is none; Manager.mu guards it.
	newer *corev1.Pod
}

// New checks the configuration and makes the directory of pods.
func New(cfg Config) (*Manager, error) {
	switch {
	case cfg.PodsDir == "", cfg.Objects == nil, cfg.Tokens == nil, cfg.Field == nil, cfg.Resource == nil, cfg.Now == nil, cfg.Log == nil:
		return nil, errors.New("volume: PodsDir, Objects, Tokens, Field, Resource, Now and Log are required")
	}
	if cfg.Period == 0 {
		cfg.Period = time.Minute
	}
	if err := os.MkdirAll(cfg.PodsDir, 0o750); err != nil {
		return nil, fmt.Errorf("make the directory of pods: %w", err)
	}
	real, err := filepath.EvalSymlinks(cfg.PodsDir) // the kernel's list of mounts has real paths
	if err != nil {
		return nil, fmt.Errorf("resolve the directory of pods: %w", err)
	}
	cfg.PodsDir = real
	return &Manager{cfg: cfg, tokens: newTokenCache(cfg.Tokens, cfg.Now, cfg.Log), stale: make(chan types.UID, 256), pods: map[types.UID]*podVolumes{}}, nil
}

// PodDir is the pod's own directory. UIDs come from the API or from static pods: one that is no plain name is refused.
func (m *Manager) PodDir(uid types.UID) (string, error) {
	if s := string(uid); s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\x00") {
		return "", fmt.Errorf("pod UID %q is no file name", uid)
	}
	return filepath.Join(m.cfg.PodsDir, string(uid)), nil
}

// Mount makes all volumes of the pod and brings their content up to date; calling it again is cheap and changes only what its
// sources changed. The error names each volume that failed, in the words of the FailedMount event.
func (m *Manager) Mount(ctx context.Context, pod *corev1.Pod) (map[string]Mounted, error) {
	p := m.entry(pod.UID, true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pod = pod
	return m.mount(ctx, pod)
}

func (m *Manager) mount(ctx context.Context, pod *corev1.Pod) (map[string]Mounted, error) {
	dir, err := m.PodDir(pod.UID)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "volumes"), 0o750); err != nil {
		return nil, fmt.Errorf("make the pod's directory: %w", err)
	}
	mounted := make(map[string]Mounted, len(pod.Spec.Volumes))
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		got, err := m.one(ctx, pod, v, dir)
		if err != nil {
			errs = append(errs, fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", v.Name, err))
			continue
		}
		mounted[v.Name] = got
	}
	return mounted, errors.Join(errs...)
}

// one makes one volume.
func (m *Manager) one(ctx context.Context, pod *corev1.Pod, v *corev1.Volume, podDir string) (Mounted, error) {
	if v.Name == "" || v.Name == "." || v.Name == ".." || strings.Contains(v.Name, "/") {
		return Mounted{}, fmt.Errorf("volume name %q is no file name", v.Name)
	}
	dir := func(plugin string) string { return filepath.Join(podDir, "volumes", "kubernetes.io~"+plugin, v.Name) }
	switch {
	case v.EmptyDir != nil:
		return Mounted{HostPath: dir("empty-dir")}, makeEmptyDir(dir("empty-dir"), pod, v.EmptyDir)
	case v.HostPath != nil:
		return Mounted{HostPath: v.HostPath.Path}, checkHostPath(v.HostPath)
	case v.ConfigMap != nil:
		return m.fill(ctx, pod, dir("configmap"), false, projection{configMap: asConfigMap(v.ConfigMap), mode: v.ConfigMap.DefaultMode})
	case v.Secret != nil:
		return m.fill(ctx, pod, dir("secret"), true, projection{secret: asSecret(v.Secret), mode: v.Secret.DefaultMode})
	case v.DownwardAPI != nil:
		return m.fill(ctx, pod, dir("downward-api"), true, projection{fields: v.DownwardAPI.Items, mode: v.DownwardAPI.DefaultMode})
	case v.Image != nil:
		return Mounted{ReadOnly: true, Image: v.Image}, nil
	case v.Projected != nil:
		parts, err := asProjections(v.Projected)
		if err != nil {
			return Mounted{}, err
		}
		return m.fill(ctx, pod, dir("projected"), true, parts...)
	case v.PersistentVolumeClaim != nil:
		return Mounted{}, fmt.Errorf("claim %q: persistent volumes are not mounted by this kubelet", v.PersistentVolumeClaim.ClaimName)
	}
	return Mounted{}, fmt.Errorf("no volume plugin matched volume %q", v.Name)
}

// fill makes a volume that holds files computed from the API, on memory if they may be secret.
func (m *Manager) fill(ctx context.Context, pod *corev1.Pod, dir string, memory bool, parts ...projection) (Mounted, error) {
	files, err := m.collect(ctx, pod, parts)
	if err != nil {
		return Mounted{}, err
	}
	if err := makeDir(dir, memory, 0); err != nil {
		return Mounted{}, err
	}
	return Mounted{HostPath: dir, ReadOnly: true}, writeAtomically(dir, files, ownerOf(pod), m.cfg.Now())
}

// Unmount removes the pod's volumes with their content; its etc-hosts and termination logs stay until Remove. The pod's
// containers must be gone. Unmounting twice is fine.
func (m *Manager) Unmount(_ context.Context, uid types.UID) error {
	p := m.entry(uid, true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pod = nil
	m.tokens.forget(uid)
	dir, err := m.PodDir(uid)
	if err != nil {
		return err
	}
	if err := removeTree(filepath.Join(dir, "volume-subpaths")); err != nil {
		return err
	}
	if err := removeTree(filepath.Join(dir, "volumes")); err != nil {
		return err
	}
	m.mu.Lock()
	delete(m.pods, uid)
	m.mu.Unlock()
	return nil
}

// Remove unmounts what is left of the pod and removes its directory.
func (m *Manager) Remove(ctx context.Context, uid types.UID) error {
	if err := m.Unmount(ctx, uid); err != nil {
		return err
	}
	dir, err := m.PodDir(uid)
	if err != nil {
		return err
	}
	return removeTree(dir)
}

// entry returns the pod's record, made if wanted.
func (m *Manager) entry(uid types.UID, create bool) *podVolumes {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[uid]
	if p == nil && create {
		p = &podVolumes{}
		m.pods[uid] = p
	}
	return p
}
