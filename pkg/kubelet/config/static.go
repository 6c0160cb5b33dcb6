package config

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// manifests are the static pods of one source, and what the handler knows of them. Only the source's Run changes it,
// and that of a source beside it (rank).
type manifests struct {
	tried  atomic.Bool
	synced atomic.Bool
	left   map[types.UID]*corev1.Pod
	// read are the pods of the last read, and known those of them that the handler has.
	read, known map[types.UID]*corev1.Pod
	rank        *rank
}

// rank orders two sources: a pod of the second whose name or uid one of the first has is left out, whichever came
// before. Two would fight for the same mirror, cgroups and directories.
type rank struct {
	mu            sync.Mutex // held while either passes its pods on
	first, second *manifests
	// yielded are the uids that the second has left out, for the log.
	yielded map[types.UID]bool
	log     *slog.Logger
}

// Synced reports whether the manifests were read once.
func (m *manifests) Synced() bool { return m.synced.Load() }

// Tried reports whether the manifests were looked for once, though they may not have been readable.
func (m *manifests) Tried() bool { return m.tried.Load() }

// Left receives, before Run, the static pods that an earlier kubelet has left in the runtime. Those that the first read
// does not find are passed on as removed, before a pod of the same name is added.
func (m *manifests) Left(pods map[types.UID]*corev1.Pod) { m.left = pods }

// pass tells the handler how the pods that were read differ from those before. If the first of two sources takes a name
// or uid, the second one's pod goes before, and it comes back after the first one's has gone.
func (m *manifests) pass(now map[types.UID]*corev1.Pod, h Handler) {
	r := m.rank
	if r == nil {
		m.tell(now, nil, h)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m.read = now
	if m == r.second {
		m.tell(r.free(), r.first.known, h)
		return
	}
	if r.second.Synced() {
		going, free := maps.Clone(r.second.known), r.free()
		maps.DeleteFunc(going, func(uid types.UID, _ *corev1.Pod) bool { return free[uid] == nil })
		r.second.tell(going, nil, h)
	}
	m.tell(now, r.second.known, h)
	if r.second.Synced() {
		r.second.tell(r.free(), nil, h)
	}
}

// tell tells the handler how pods differ from those that it knows. others are those of the other source: one that an
// earlier kubelet has left under such a uid is not this source's to remove.
func (m *manifests) tell(now, others map[types.UID]*corev1.Pod, h Handler) {
	updated, removed := diff(m.known, now)
	if !m.Synced() {
		_, removed = diff(m.left, now)
	}
	for _, p := range removed {
		if others[p.UID] == nil {
			h.Remove(p)
		}
	}
	for _, p := range updated {
		h.Update(p)
	}
	m.known = now
	m.synced.Store(true)
}

// free returns the pods of the second source whose names and uids the first has not.
func (r *rank) free() map[types.UID]*corev1.Pod {
	names, out, yielded := map[string]bool{}, map[types.UID]*corev1.Pod{}, map[types.UID]bool{}
	for _, p := range r.first.read {
		names[runtime.FullName(p)] = true
	}
	for uid, p := range r.second.read {
		full := runtime.FullName(p)
		if !names[full] && r.first.read[uid] == nil {
			out[uid] = p
			continue
		}
		if yielded[uid] = true; !r.yielded[uid] {
			r.log.Error("a static pod of the URL is left out: a manifest of the directory has its name or metadata.uid", "pod",
				full, "uid", uid)
		}
	}
	r.yielded = yielded
	return out
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

// Run passes the pods of all sources on until ctx ends. Of two sources, the files come first (rank).
func (s Static) Run(ctx context.Context, h Handler) error {
	if s.Files != nil && s.URL != nil {
		r := &rank{first: &s.Files.manifests, second: &s.URL.manifests, log: s.Files.Log}
		r.first.rank, r.second.rank = r, r
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, one := range s.sources() {
		g.Go(func() error { return one.Run(ctx, h) })
	}
	return g.Wait()
}
