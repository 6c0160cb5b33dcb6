package volume

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Usage is how full a claim's volume is. For a device only the capacity is known.
type Usage struct {
	Volume                         string // its name in the pod
	Claim                          *corev1.PersistentVolumeClaim
	Capacity, Available, Used      uint64
	Inodes, InodesFree, InodesUsed uint64
}

// measure starts measurements of how full the pod's claims are. One may take as long as its storage does, which is for
// ever if that hangs, and statfs cannot be interrupted: so nobody waits for it. Each volume is measured once at a time;
// until that is over, the previous figures stay. A hung storage thus costs one goroutine and one thread for each
// volume, and no more with each period. The lock order is p.mu before m.mu, and here they are not held together.
func (m *Manager) measure(ctx context.Context, p *podVolumes, pod *corev1.Pod, mounted map[string]Mounted) {
	p.mu.Lock()
	specs := maps.Clone(p.resolved)
	p.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(p.usage, func(name string, _ Usage) bool { _, there := mounted[name]; return !there })
	if m.pods[pod.UID] != p { // unmounted meanwhile
		return
	}
	for name, s := range specs {
		at, ok := mounted[name]
		if !ok || p.measuring[name] != nil {
			continue
		}
		if p.measuring == nil {
			p.measuring = map[string]context.CancelFunc{}
		}
		own, cancel := context.WithCancel(ctx)
		p.measuring[name] = cancel
		go m.measureOne(own, p, pod, name, s, at)
	}
}

// measureOne measures one volume and gives up its turn. It runs on its own goroutine. The volume may be gone when it
// returns; the next measure removes what it leaves.
func (m *Manager) measureOne(ctx context.Context, p *podVolumes, pod *corev1.Pod, name string, s Spec, at Mounted) {
	begun := time.Now()
	u, by := m.usage(ctx, pod, s, at)
	if by != "" {
		m.cfg.Metrics.VolumeMeasured(by, time.Since(begun))
	}
	u.Volume, u.Claim = name, s.Claim
	m.mu.Lock()
	defer m.mu.Unlock()
	p.measuring[name]()
	delete(p.measuring, name)
	if by == "" {
		delete(p.usage, name)
		return
	}
	if p.usage == nil {
		p.usage = map[string]Usage{}
	}
	p.usage[name] = u
}

// usage returns how full one volume is, and who said so: statfs or its source, "" if nobody can. No lock is held here:
// each of these calls may hang.
func (m *Manager) usage(ctx context.Context, pod *corev1.Pod, s Spec, at Mounted) (u Usage, by string) {
	if asked, is := m.source(s).(Measurer); is {
		dir, err := m.PodDir(pod.UID)
		if err != nil {
			return Usage{}, ""
		}
		u, known := asked.Measure(ctx, m.place(pod.UID, dir, asked, s.VolumeName(), s.Block()), s)
		if !known {
			return Usage{}, ""
		}
		return u, asked.Name()
	}
	var st unix.Statfs_t
	if at.Device || at.HostPath == "" || unix.Statfs(at.HostPath, &st) != nil {
		return Usage{}, ""
	}
	size := uint64(st.Bsize)
	return Usage{Capacity: st.Blocks * size, Available: st.Bavail * size, Used: (st.Blocks - st.Bfree) * size,
		Inodes: st.Files, InodesFree: st.Ffree, InodesUsed: st.Files - st.Ffree}, "statfs"
}

// Usage returns how full the claims of the node's pods were at the last measurement, each claim once. That is at most
// Period ago, or longer for a volume whose storage does not answer.
func (m *Manager) Usage() []Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	type key struct{ namespace, name string }
	seen := map[key]bool{}
	var out []Usage
	for _, p := range m.pods {
		for _, u := range p.usage {
			if k := (key{u.Claim.Namespace, u.Claim.Name}); !seen[k] {
				seen[k] = true
				out = append(out, u)
			}
		}
	}
	return out
}

// PodUsage returns how full the claims of one pod were at the last measurement.
func (m *Manager) PodUsage(uid types.UID) []Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[uid]; p != nil {
		return slices.Collect(maps.Values(p.usage))
	}
	return nil
}

// count records, after a pass, how many volumes of each kind the pod should have, and has.
func (m *Manager) count(w *pass, mounted map[string]Mounted) {
	desired, actual := map[string]int{}, map[string]int{}
	for name, kind := range w.kinds {
		desired[kind]++
		if _, ok := mounted[name]; ok {
			actual[kind]++
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w.desired, w.actual = desired, actual
}

// Count returns how many volumes of each source the node's pods should have, and have, by the source's name.
func (m *Manager) Count() (desired, actual map[string]int) {
	desired, actual = map[string]int{}, map[string]int{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pods {
		for kind, n := range p.desired {
			desired[kind] += n
		}
		for kind, n := range p.actual {
			actual[kind] += n
		}
	}
	return desired, actual
}
