package localstorage

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

const (
	// period is how often pods with limits are measured; after a round that took long, the pause is rest times as long, so that measuring takes
	// no more than a small part of the disk's time.
	period = 10 * time.Second
	rest   = 20
)

// Runtime is the container runtime.
type Runtime interface {
	Pods(ctx context.Context) ([]*runtime.PodStatus, error)
	// WritableLayers are the bytes that containers have written beside their volumes, by container id.
	WritableLayers(ctx context.Context) (map[string]uint64, error)
}

// Config is what a Watcher needs. All is required.
type Config struct {
	Runtime Runtime
	// Pods are those that may be evicted and have not ended.
	Pods func() []*corev1.Pod
	// LogDir is the directory of a pod's logs, which has one for each container; EmptyDir that of one of its emptyDirs.
	LogDir   func(pod *corev1.Pod) string
	EmptyDir func(pod *corev1.Pod, volume string) (string, error)
	// Exceeded tells of a pod that must go; Excess says why.
	Exceeded func(uid types.UID)
	Log      *slog.Logger
}

// Watcher measures the pods that have limits. Its methods are safe for concurrent use.
type Watcher struct {
	cfg Config

	mu sync.Mutex
	// found is why pods must go, of those that are not gone yet.
	found map[types.UID]*Excess
}

// NewWatcher checks the configuration.
func NewWatcher(cfg Config) (*Watcher, error) {
	if cfg.Runtime == nil || cfg.Pods == nil || cfg.LogDir == nil || cfg.EmptyDir == nil || cfg.Exceeded == nil || cfg.Log == nil {
		return nil, errors.New("local storage: the whole configuration is required")
	}
	return &Watcher{cfg: cfg, found: map[types.UID]*Excess{}}, nil
}

// Excess is why a pod must go, nil if it need not.
func (w *Watcher) Excess(uid types.UID) *Excess {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found[uid]
}

// Run measures in periods until ctx ends. Pods without limits cost nothing.
func (w *Watcher) Run(ctx context.Context) error {
	timer := time.NewTimer(period)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		begun := time.Now()
		if err := w.measure(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Log.Warn("local storage of pods not measured", "err", err)
		}
		timer.Reset(max(period, rest*time.Since(begun)))
	}
}

// measure looks at the pods with limits once. The runtime is asked once for all of them.
func (w *Watcher) measure(ctx context.Context) error {
	pods := w.cfg.Pods()
	w.forget(pods)
	limited := make([]*corev1.Pod, 0, len(pods))
	for _, p := range pods {
		if Limited(p) {
			limited = append(limited, p)
		}
	}
	if len(limited) == 0 {
		return nil
	}
	list, err := w.cfg.Runtime.Pods(ctx)
	if err != nil {
		return err
	}
	running := make(map[types.UID]*runtime.PodStatus, len(list))
	for _, p := range list {
		running[p.UID] = p
	}
	layers, err := w.cfg.Runtime.WritableLayers(ctx)
	if err != nil {
		return err
	}
	for _, p := range limited {
		if running[p.UID] == nil { // it has not begun
			continue
		}
		u, err := w.usage(ctx, p, running[p.UID], layers)
		if err != nil {
			return err
		}
		if why := Exceeded(p, u); why != nil {
			w.mu.Lock()
			w.found[p.UID] = why
			w.mu.Unlock()
			w.cfg.Exceeded(p.UID)
		}
	}
	return nil
}

// forget drops what was found of all but these pods.
func (w *Watcher) forget(but []*corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := map[types.UID]*Excess{}
	for _, p := range but {
		if why := w.found[p.UID]; why != nil {
			kept[p.UID] = why
		}
	}
	w.found = kept
}

// usage measures one pod; layers are the bytes of writable layers by container id.
func (w *Watcher) usage(ctx context.Context, pod *corev1.Pod, rt *runtime.PodStatus, layers map[string]uint64) (Usage, error) {
	u := Usage{Containers: map[string]int64{}, Volumes: map[string]int64{}}
	logs := w.cfg.LogDir(pod)
	for c := range runtime.Containers(pod) {
		u.Containers[c.Name] = Logs(filepath.Join(logs, c.Name))
		if x := rt.Container(c.Name); x != nil {
			u.Containers[c.Name] += int64(layers[x.ID.ID])
		}
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !OnDisk(v) {
			continue
		}
		dir, err := w.cfg.EmptyDir(pod, v.Name)
		if err != nil {
			return u, err
		}
		if u.Volumes[v.Name], err = Tree(ctx, dir); err != nil {
			return u, err
		}
	}
	return u, nil
}
