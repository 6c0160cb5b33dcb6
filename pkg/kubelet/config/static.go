package config

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// manifests are the static pods of one source, and what the handler knows of them. Only the source's Run changes it.
type manifests struct {
	tried  atomic.Bool
	synced atomic.Bool
	left   map[types.UID]*corev1.Pod
	known  map[types.UID]*corev1.Pod
}

// Synced reports whether the manifests were read once.
func (m *manifests) Synced() bool { return m.synced.Load() }

// Tried reports whether the manifests were looked for once, though they may not have been readable.
func (m *manifests) Tried() bool { return m.tried.Load() }

// Left receives, before Run, the static pods that an earlier kubelet has left in the runtime. Those that the first read
// does not find are passed on as removed, before a pod of the same name is added.
func (m *manifests) Left(pods map[types.UID]*corev1.Pod) { m.left = pods }

// pass tells the handler how the pods that were read differ from those before.
func (m *manifests) pass(now map[types.UID]*corev1.Pod, h Handler) {
	updated, removed := diff(m.known, now)
	if !m.Synced() {
		_, removed = diff(m.left, now)
	}
	for _, p := range removed {
		h.Remove(p)
	}
	for _, p := range updated {
		h.Update(p)
	}
	m.known = now
	m.synced.Store(true)
}

// diff compares two sets of static pods. One whose content changed is removed and starts over: it has another uid, or
// the same one if its manifest gives it, and then another hash. It is pure.
func diff(before, after map[types.UID]*corev1.Pod) (updated, removed []*corev1.Pod) {
	for uid, p := range before {
		if q := after[uid]; q == nil || !sameManifest(p, q) {
			removed = append(removed, p)
		}
	}
	for uid, p := range after {
		if q := before[uid]; q == nil || !sameManifest(p, q) {
			updated = append(updated, p)
		}
	}
	return updated, removed
}

func sameManifest(a, b *corev1.Pod) bool {
	return a.Annotations[runtime.AnnotationConfigHash] == b.Annotations[runtime.AnnotationConfigHash]
}

// Static are a node's static pods, from a directory, a URL or both.
type Static struct {
	// Files and URL may be nil, but not both.
	Files *Files
	URL   *URL
}

// staticSource is one source of static pods.
type staticSource interface {
	Run(ctx context.Context, h Handler) error
	Synced() bool
	Tried() bool
	Left(pods map[types.UID]*corev1.Pod)
}

// sources are those that there are.
func (s Static) sources() (out []staticSource) {
	if s.Files != nil {
		out = append(out, s.Files)
	}
	if s.URL != nil {
		out = append(out, s.URL)
	}
	return out
}

// Synced reports whether all manifests were read once.
func (s Static) Synced() bool {
	for _, one := range s.sources() {
		if !one.Synced() {
			return false
		}
	}
	return true
}

// Tried reports whether all manifests were looked for once, though they may not have been readable.
func (s Static) Tried() bool {
	for _, one := range s.sources() {
		if !one.Tried() {
			return false
		}
	}
	return true
}

// Left receives, before Run, the static pods that an earlier kubelet has left in the runtime. Each source gets its own;
// those of a source that there is no more go to the other, which does not have them.
func (s Static) Left(pods map[types.UID]*corev1.Pod) {
	if s.Files == nil || s.URL == nil {
		s.sources()[0].Left(pods)
		return
	}
	files, urls := map[types.UID]*corev1.Pod{}, map[types.UID]*corev1.Pod{}
	for uid, p := range pods {
		if p.Annotations[runtime.AnnotationConfigSource] == sourceURL {
			urls[uid] = p
		} else {
			files[uid] = p
		}
	}
	s.Files.Left(files)
	s.URL.Left(urls)
}

// Run passes the pods of all sources on until ctx ends. The handler may be called by two sources at once.
func (s Static) Run(ctx context.Context, h Handler) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, one := range s.sources() {
		g.Go(func() error { return one.Run(ctx, h) })
	}
	return g.Wait()
}
