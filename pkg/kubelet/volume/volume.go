// Package volume keeps a pod's volumes on the node. It asks the Source of each volume's kind (source.go; one package
// per kind or family below this one) to make it, to keep its content up to date while the pod runs, and to take it
// down. A volume lives in <pods>/<uid>/volumes/kubernetes.io~<source>/<name>. The package also resolves subPaths below
// their volume and keeps the few files that a pod has outside its volumes (etc-hosts, termination logs).
//
// The contract with applications: https://kubernetes.io/docs/concepts/storage/volumes/.
package volume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Metrics receives work on volumes; source is the name of a volume's source.
type Metrics interface {
	// VolumeWork receives one try: volume_mount, volume_unmount, map_volume or unmap_volume.
	VolumeWork(source, operation string, took time.Duration, err error)
	// VolumeThere receives the time from the first request for a pod's volumes until the pod had this one, a volume of
	// files, for the first time.
	VolumeThere(source string, took time.Duration)
	// VolumeMeasured receives how long it took to find out how full a volume is, by statfs or by asking its source.
	VolumeMeasured(by string, took time.Duration)
	// VolumesSwept receives the result of one search for what pods that are gone have left: from how many it was
	// removed, and from how many it could not be.
	VolumesSwept(removed, failed int)
}

// Config is what a Manager needs. All but Period and Metrics are required.
type Config struct {
	// PodsDir is the directory of all pods' directories, /var/lib/kubelet/pods.
	PodsDir string
	// Sources are the kinds of volumes, each of a name of its own.
	Sources []Source
	// Claims finds the PersistentVolumes of claims.
	Claims Claims
	// Growth makes the file systems of claims as large as their volumes have become.
	Growth Grower
	// Period is how often Run checks all volumes for outdated content, besides Changed and Update; 1 minute by default.
	Period  time.Duration
	Metrics Metrics
	Log     *slog.Logger
}

// Manager makes and removes volumes. Its methods are safe for concurrent use. Work on the files of one pod is done one
// after the other, under podVolumes.mu. Content is fetched without any lock, so that a slow API server delays neither a
// pod's end nor its restarts. Manager.mu is the inner lock: it may be taken under podVolumes.mu, never the reverse.
type Manager struct {
	cfg   Config
	stale chan types.UID

	mu   sync.Mutex
	pods map[types.UID]*podVolumes
	// users are the pods that use a PersistentVolume, by its name.
	users map[string]map[types.UID]bool
}

// podVolumes is what the manager remembers about a pod. mu serializes the work on its files and is never held while the
// API server is asked.
type podVolumes struct {
	mu  sync.Mutex
	pod *corev1.Pod // as last mounted; nil: unmounted
	// passes counts the times that the pod's volumes were prepared. published has, by volume, the result of the latest
	// one: a pass that began earlier and ends later must not overwrite it.
	passes    uint64
	published map[string]published
	// asked is when the pod's volumes were first requested; there has those that have been made since.
	asked time.Time
	there map[string]bool
	// resolved has the volumes that the pod's claims are bound to, by the volume's name. A binding does not change
	// while the pod lives, and the API may no longer show it: a claim may be gone before the last pod that uses it.
	resolved map[string]Spec

	// The rest is guarded by Manager.mu. newer is a newer version of the pod that is to be mounted next, nil without
	// one.
	newer *corev1.Pod
	// cancel ends the refresh in progress, nil without one: there is one at a time. again: another one is due after it.
	cancel context.CancelFunc
	again  bool
	// usage is how full its claims were at the last measurement, by volume; measuring cancels the measurements in
	// progress, at most one for each volume.
	usage     map[string]Usage
	measuring map[string]context.CancelFunc
	// desired and actual are the numbers of volumes of each kind that the pod should have, and had after the last pass.
	desired, actual map[string]int
}

// published is the result of publishing a volume.
type published struct {
	pass    uint64
	mounted Mounted
	err     error
}

// errUnmounted is the error of a pass whose pod's volumes were removed meanwhile.
var errUnmounted = errors.New("the pod's volumes are removed")

// New checks the configuration and makes the directory of pods.
func New(cfg Config) (*Manager, error) {
	if cfg.PodsDir == "" || len(cfg.Sources) == 0 || cfg.Claims == nil || cfg.Growth == nil || cfg.Log == nil {
		return nil, errors.New("volume: PodsDir, Sources, Claims, Growth and Log are required")
	}
	if cfg.Period == 0 {
		cfg.Period = time.Minute
	}
	if cfg.Metrics == nil {
		cfg.Metrics = uncounted{}
	}
	if err := os.MkdirAll(cfg.PodsDir, 0o750); err != nil {
		return nil, fmt.Errorf("make the directory of pods: %w", err)
	}
	real, err := filepath.EvalSymlinks(cfg.PodsDir) // the kernel's list of mounts has real paths
	if err != nil {
		return nil, fmt.Errorf("resolve the directory of pods: %w", err)
	}
	cfg.PodsDir = real
	return &Manager{cfg: cfg, stale: make(chan types.UID, 256), pods: map[types.UID]*podVolumes{},
		users: map[string]map[types.UID]bool{}}, nil
}

// PodDir is the pod's own directory. UIDs come from the API or from static pods: one that is no plain name is refused.
func (m *Manager) PodDir(uid types.UID) (string, error) {
	if !fileName(string(uid)) {
		return "", fmt.Errorf("pod UID %q is no file name", uid)
	}
	return filepath.Join(m.cfg.PodsDir, string(uid)), nil
}

// Mount makes all volumes of the pod and brings their content up to date. Calling it again is cheap and changes only
// what the sources have changed. Volumes do not wait for each other's errors. The error joins those of all volumes that
// failed, each with the text of its event, FailedMount or FailedMapVolume (MapError).
func (m *Manager) Mount(ctx context.Context, pod *corev1.Pod) (map[string]Mounted, error) {
	p := m.entry(pod.UID, true)
	p.mu.Lock()
	p.pod = pod
	if p.asked.IsZero() {
		p.asked = time.Now()
	}
	p.mu.Unlock()
	return m.mount(ctx, p, pod, false)
}

// mount brings the volumes of a pod up to date; renew also replaces what is about to expire.
func (m *Manager) mount(ctx context.Context, p *podVolumes, pod *corev1.Pod, renew bool) (map[string]Mounted, error) {
	dir, err := m.PodDir(pod.UID)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.passes++
	w := &pass{podVolumes: p, number: p.passes, pod: pod, dir: dir, renew: renew, places: map[string]string{},
		kinds: map[string]string{}}
	p.mu.Unlock()
	if err := w.change(func() error { return os.MkdirAll(filepath.Join(dir, volumes), 0o750) }); err != nil {
		return nil, fmt.Errorf("make the pod's directory: %w", err)
	}
	mounted := make(map[string]Mounted, len(pod.Spec.Volumes))
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		got, err := m.one(ctx, w, v)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		mounted[v.Name] = got
	}
	m.count(w, mounted)
	return mounted, errors.Join(errs...)
}

// pass is one time that a pod's volumes are brought up to date.
type pass struct {
	*podVolumes
	number uint64
	pod    *corev1.Pod
	dir    string
	renew  bool
	// places are the directories of the volumes seen so far, and which volume each is.
	places map[string]string
	// kinds are the names of the volumes' sources.
	kinds map[string]string
}

// change runs f, which works on the pod's files, unless the pod's volumes are being removed.
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
	spec, err := m.spec(ctx, w, v)
	if err != nil {
		return Mounted{}, err
	}
	begun, operation := time.Now(), "volume_mount"
	if spec.Block() {
		operation = "map_volume"
	}
	got, err := m.make(ctx, w, spec)
	s := m.source(spec)
	if s != nil {
		m.cfg.Metrics.VolumeWork(s.Name(), operation, time.Since(begun), err)
	}
	if err != nil {
		return Mounted{}, failure(spec, err)
	}
	if took, first := w.arrived(v.Name); first && !spec.Block() {
		m.cfg.Metrics.VolumeThere(s.Name(), took)
	}
	got.ReadOnly = got.ReadOnly || spec.ReadOnly
	return got, nil
}

// arrived records that a volume has been made, and returns how long that took if it is the first time.
func (w *pass) arrived(name string) (took time.Duration, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.there[name] {
		return 0, false
	}
	if w.there == nil {
		w.there = map[string]bool{}
	}
	w.there[name] = true
	return time.Since(w.asked), true
}

// failure gives an error the text of its event: the step that failed and the volume.
func failure(spec Spec, err error) error {
	step := "MountVolume.SetUp failed"
	if spec.Block() {
		step = "MapVolume.SetUpDevice failed"
	}
	if e, ok := errors.AsType[*StepError](err); ok {
		step = e.Step
	}
	err = fmt.Errorf("%s for volume %q : %w", step, spec.VolumeName(), err)
	if spec.Block() {
		return &MapError{err}
	}
	return err
}

// make makes one volume. Checks that need no source come first: the name becomes a path, so it must not lead elsewhere.
func (m *Manager) make(ctx context.Context, w *pass, spec Spec) (Mounted, error) {
	if !fileName(spec.VolumeName()) {
		return Mounted{}, fmt.Errorf("volume name %q is no file name", spec.VolumeName())
	}
	s := m.source(spec)
	if s == nil {
		return Mounted{}, fmt.Errorf("no volume plugin matched volume %q", spec.VolumeName())
	}
	w.kinds[spec.Volume.Name] = s.Name()
	if _, can := s.(MountOptioner); !can && len(spec.MountOptions()) > 0 {
		return Mounted{}, &StepError{"MountVolume.MountOptionSupport check failed",
			errors.New("Mount options are not supported for this volume type")}
	}
	if _, can := s.(Mapper); !can && spec.Block() {
		return Mounted{}, &StepError{"MapVolume.FindMapperPluginBySpec failed",
			errors.New("the volume plugin gives no block devices")}
	}
	at := m.place(w.pod.UID, w.dir, s, spec.VolumeName(), spec.Block())
	if err := w.take(at, spec); err != nil {
		return Mounted{}, err
	}
	r := Request{Place: at, Pod: w.pod, Spec: spec, Renew: w.renew}
	publish, err := s.Prepare(ctx, r)
	if err != nil {
		return Mounted{}, err
	}
	var got published
	if err := w.change(func() error { got = w.publish(spec.Volume.Name, publish); return got.err }); err != nil {
		return Mounted{}, err
	}
	if e, can := s.(Expander); can && spec.PV != nil && e.Expands(spec) {
		if err := m.cfg.Growth.Grow(ctx, r, e); err != nil {
			return Mounted{}, &StepError{"MountVolume.Setup failed while expanding volume", err}
		}
	}
	return got.mounted, nil
}

// take notes whose a place is. Two volumes of a pod may be one PersistentVolume; but that must not have the place of a
// volume of the pod itself.
func (w *pass) take(at Place, spec Spec) error {
	which := "the pod's"
	if spec.PV != nil {
		which = "the PersistentVolume"
	}
	if other, taken := w.places[at.Dir]; taken && other != which {
		return fmt.Errorf("another volume of the pod has the directory %s", at.Dir)
	}
	w.places[at.Dir] = which
	return nil
}

// publish publishes a volume, unless a later pass was faster. The pod's mu is held.
func (w *pass) publish(name string, f Publish) published {
	if last := w.published[name]; last.pass > w.number {
		return last
	}
	if w.published == nil {
		w.published = map[string]published{}
	}
	got := published{pass: w.number}
	got.mounted, got.err = f()
	w.published[name] = got
	return got
}

// source returns the source of a volume's kind, nil if there is none.
func (m *Manager) source(spec Spec) Source {
	for _, s := range m.cfg.Sources {
		if s.Supports(spec) {
			return s
		}
	}
	return nil
}

// Unmount removes the pod's volumes with their content; etc-hosts and termination logs stay until Remove. The pod's
// containers must be gone. It may be called again. It cancels what waits for the API server or for storage, so it does
// not wait for them. subPaths go first, because they are bind mounts of parts of volumes; what no source knows goes
// last.
func (m *Manager) Unmount(ctx context.Context, uid types.UID) error {
	p := m.entry(uid, true)
	m.mu.Lock()
	if p.cancel != nil {
		p.cancel()
	}
	for _, cancel := range p.measuring {
		cancel()
	}
	m.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	pod := p.pod
	p.pod = nil
	dir, err := m.PodDir(uid)
	if err != nil {
		return err
	}
	if err := RemoveTree(ctx, filepath.Join(dir, subPaths)); err != nil { // they are parts of volumes
		return err
	}
	if err := m.takeDown(ctx, uid, dir, pod); err != nil {
		return err
	}
	for _, part := range []string{notes, volumes, deviceNotes, devices} { // what no source knows
		if err := RemoveTree(ctx, filepath.Join(dir, part)); err != nil {
			return err
		}
	}
	m.release(uid, p.resolved)
	p.resolved = nil
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
	return RemoveTree(ctx, dir)
}

// entry returns the pod's record, nil if there is none and create is false.
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
