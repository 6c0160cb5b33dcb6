package localstorage

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

const (
	// period is how often pods with limits are measured. After a round that took long, the pause is rest times as long,
	// so that measuring takes a small part of the disk's time, but at most longest: a node's disk is slow just when its
	// pods write much.
	period  = 10 * time.Second
	rest    = 20
	longest = time.Minute // upstream measures volumes as often
)

// Runtime is the container runtime.
type Runtime interface {
	Pods(ctx context.Context) ([]*runtime.PodStatus, error)
	// WritableLayers returns what containers have written outside their volumes, by container id.
	WritableLayers(ctx context.Context) (map[string]runtime.DiskUse, error)
}

// Config is what a Watcher needs. All is required.
type Config struct {
	Runtime Runtime
	// Pods are those whose containers may run.
	Pods func() []*corev1.Pod
	// LogDir is the directory of a pod's logs, which has one for each container; EmptyDir that of one of its emptyDirs;
	// Messages that of the termination messages of one of its containers, to which the container may write as much as
	// it likes.
	LogDir   func(pod *corev1.Pod) string
	EmptyDir func(pod *corev1.Pod, volume string) (string, error)
	Messages func(pod *corev1.Pod, container string) (string, error)
	// Exceeded receives a pod that must go, again and again as long as it exists.
	Exceeded func(uid types.UID, why runtime.Ending)
	// Measured receives how long it took to measure an emptyDir.
	Measured func(took time.Duration)
	Log      *slog.Logger
}

// Watcher measures pods. It keeps nothing.
type Watcher struct{ cfg Config }

// NewWatcher checks the configuration.
func NewWatcher(cfg Config) (*Watcher, error) {
	if cfg.Runtime == nil || cfg.Pods == nil || cfg.LogDir == nil || cfg.EmptyDir == nil || cfg.Messages == nil ||
		cfg.Exceeded == nil || cfg.Measured == nil || cfg.Log == nil {
		return nil, errors.New("local storage: the whole configuration is required")
	}
	return &Watcher{cfg: cfg}, nil
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
		timer.Reset(pause(time.Since(begun)))
	}
}

// pause returns how long to wait after a round that took so long.
func pause(took time.Duration) time.Duration { return min(max(period, rest*took), longest) }

// measure looks at the pods with limits once.
func (w *Watcher) measure(ctx context.Context) error {
	limited := slices.DeleteFunc(slices.Clone(w.cfg.Pods()), func(p *corev1.Pod) bool { return !isLimited(p) })
	if len(limited) == 0 {
		return nil
	}
	return w.Each(ctx, limited, func(p *corev1.Pod, u Usage) {
		if why := exceeded(p, u); why != nil {
			w.cfg.Exceeded(p.UID, *why)
		}
	})
}

// Each measures pods, except for those that the runtime does not know yet, and tells f of each one. The runtime is
// asked once for all of them. A pod that cannot be measured is left out: the others are held to their limits, and
// evicted where they must, all the same.
func (w *Watcher) Each(ctx context.Context, pods []*corev1.Pod, f func(*corev1.Pod, Usage)) error {
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
	for _, p := range pods {
		if running[p.UID] == nil {
			continue
		}
		switch u, err := w.usage(ctx, p, running[p.UID], layers); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			w.cfg.Log.Warn("what a pod has on the node's disk is not known", "pod", p.Namespace+"/"+p.Name, "err", err)
		default:
			f(p, u)
		}
	}
	return nil
}

// usage measures one pod; layers are its containers' writable layers by container id.
func (w *Watcher) usage(ctx context.Context, pod *corev1.Pod, rt *runtime.PodStatus,
	layers map[string]runtime.DiskUse) (Usage, error) {
	u := Usage{Layers: map[string]runtime.DiskUse{}, Logs: map[string]runtime.DiskUse{},
		Volumes: map[string]runtime.DiskUse{}}
	logs := w.cfg.LogDir(pod)
	for c := range runtime.Containers(pod) {
		messages, err := w.cfg.Messages(pod, c.Name)
		if err != nil {
			return u, err
		}
		u.Logs[c.Name] = podLogs(filepath.Join(logs, c.Name)).Plus(podLogs(messages))
		if x := rt.Container(c.Name); x != nil {
			u.Layers[c.Name] = layers[x.ID.ID]
		}
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !onDisk(v) {
			continue
		}
		dir, err := w.cfg.EmptyDir(pod, v.Name)
		if err != nil {
			return u, err
		}
		begun := time.Now()
		if u.Volumes[v.Name], err = tree(ctx, dir); err != nil {
			return u, err
		}
		w.cfg.Measured(time.Since(begun))
	}
	return u, nil
}
