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

// Manager makes and removes volumes. Its methods are safe for concurrent use. Work on the files of one pod is done one after the other;
// what goes into them is asked for without any lock, so that a slow API server holds up neither a pod's end nor its restarts.
type Manager struct {
	cfg    Config
	tokens *tokenCache
	stale  chan types.UID

	mu   sync.Mutex
	pods map[types.UID]*podVolumes
}

// podVolumes is what the manager remembers of a pod. mu serializes the work on its files and is never held while the API server is asked.
type podVolumes struct {
	mu  sync.Mutex
	pod *corev1.Pod // as last mounted; nil: unmounted
	// passes counts the times that the pod's content was collected. written is, by directory, the pass whose content it has: one that
	// began earlier and ends later must not overwrite it.
	passes  uint64
	written map[string]uint64

	// The rest is guarded by Manager.mu. newer is a version of the pod to be mounted next, nil if there is none.
	newer *corev1.Pod
	// cancel ends the refresh in progress, nil if there is none: there is one at a time. again: another one is due after it.
	cancel context.CancelFunc
	again  bool
}

// errUnmounted tells that a pod's volumes were removed while their content was asked for.
var errUnmounted = errors.New("the pod's volumes are removed")

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
	p.pod = pod
	p.mu.Unlock()
	return m.mount(ctx, p, pod, false)
}

// mount brings the volumes of a pod up to date; renew says whether tokens near their end are replaced, too.
func (m *Manager) mount(ctx context.Context, p *podVolumes, pod *corev1.Pod, renew bool) (map[string]Mounted, error) {
	dir, err := m.PodDir(pod.UID)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.passes++
	w := &pass{podVolumes: p, number: p.passes, pod: pod, dir: dir, renew: renew}
	p.mu.Unlock()
	if err := w.change(func() error { return os.MkdirAll(filepath.Join(dir, "volumes"), 0o750) }); err != nil {
		return nil, fmt.Errorf("make the pod's directory: %w", err)
	}
	mounted := make(map[string]Mounted, len(pod.Spec.Volumes))
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		got, err := m.one(ctx, w, v)
		if err != nil {
			errs = append(errs, fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", v.Name, err))
			continue
		}
		mounted[v.Name] = got
	}
	return mounted, errors.Join(errs...)
}

// pass is one time that a pod's volumes are brought up to date.
type pass struct {
	*podVolumes
	number uint64
	pod    *corev1.Pod
	dir    string
	renew  bool
}

// change works on the pod's files, unless they are to be gone.
func (w *pass) change(f func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.podVolumes.pod == nil {
		return errUnmounted
	}
	return f()
}

// one makes one volume.
func (m *Manager) one(ctx context.Context, w *pass, v *corev1.Volume) (Mounted, error) {
	if v.Name == "" || v.Name == "." || v.Name == ".." || strings.Contains(v.Name, "/") {
		return Mounted{}, fmt.Errorf("volume name %q is no file name", v.Name)
	}
	dir := func(plugin string) string { return filepath.Join(w.dir, "volumes", "kubernetes.io~"+plugin, v.Name) }
	switch {
	case v.EmptyDir != nil:
		done := filepath.Join(w.dir, records, "kubernetes.io~empty-dir", v.Name, "ready")
		return Mounted{HostPath: dir("empty-dir")}, w.change(func() error { return makeEmptyDir(dir("empty-dir"), done, w.pod, v.EmptyDir) })
	case v.HostPath != nil:
		return Mounted{HostPath: v.HostPath.Path}, checkHostPath(v.HostPath)
	case v.ConfigMap != nil:
		return m.fill(ctx, w, dir("configmap"), false, projection{configMap: asConfigMap(v.ConfigMap), mode: v.ConfigMap.DefaultMode})
	case v.Secret != nil:
		return m.fill(ctx, w, dir("secret"), true, projection{secret: asSecret(v.Secret), mode: v.Secret.DefaultMode})
	case v.DownwardAPI != nil:
		return m.fill(ctx, w, dir("downward-api"), true, projection{fields: v.DownwardAPI.Items, mode: v.DownwardAPI.DefaultMode})
	case v.Image != nil:
		return Mounted{ReadOnly: true, Image: v.Image}, nil
	case v.Projected != nil:
		parts, err := asProjections(v.Projected)
		if err != nil {
			return Mounted{}, err
		}
		return m.fill(ctx, w, dir("projected"), true, parts...)
	case v.PersistentVolumeClaim != nil:
		return Mounted{}, fmt.Errorf("claim %q: persistent volumes are not mounted by this kubelet", v.PersistentVolumeClaim.ClaimName)
	}
	return Mounted{}, fmt.Errorf("no volume plugin matched volume %q", v.Name)
}

// fill makes a volume that holds files computed from the API, on memory if they may be secret.
func (m *Manager) fill(ctx context.Context, w *pass, dir string, memory bool, parts ...projection) (Mounted, error) {
	files, err := m.collect(ctx, w, parts)
	if err != nil {
		return Mounted{}, err
	}
	return Mounted{HostPath: dir, ReadOnly: true}, w.change(func() error {
		if w.written[dir] > w.number {
			return nil // a later pass was faster
		}
		if err := makeDir(dir, memory, 0); err != nil {
			return err
		}
		if w.written == nil {
			w.written = map[string]uint64{}
		}
		w.written[dir] = w.number
		return writeAtomically(dir, files, ownerOf(w.pod), m.cfg.Now())
	})
}

// records is the directory, beside that of the volumes, where it is noted which emptyDirs are complete.
const records = "plugins"

// Unmount removes the pod's volumes with their content; its etc-hosts and termination logs stay until Remove. The pod's
// containers must be gone. Unmounting twice is fine. It waits for no answer of the API server: what is being asked for is given up.
func (m *Manager) Unmount(_ context.Context, uid types.UID) error {
	p := m.entry(uid, true)
	m.mu.Lock()
	if p.cancel != nil {
		p.cancel()
	}
	m.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pod = nil
	m.tokens.forget(uid)
	dir, err := m.PodDir(uid)
	if err != nil {
		return err
	}
	for _, part := range []string{records, "volume-subpaths", "volumes"} { // the records first: they must not outlive their volumes
		if err := removeTree(filepath.Join(dir, part)); err != nil {
			return err
		}
	}
	m.mu.Lock()
	if m.pods[uid] == p {
		delete(m.pods, uid)
	}
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
