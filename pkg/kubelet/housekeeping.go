package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/cri"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/runtime"
)

// Periods of the cleaning.
const (
	cleanPeriod = 30 * time.Second
	imagePeriod = 5 * time.Minute
)

// listed looks at a list of the runtime for pods that no source knows: they are ended. Until all sources have spoken, no pod
// counts as unknown.
func (k *Kubelet) listed(pods []*runtime.PodStatus) {
	if !k.Synced() {
		return
	}
	for _, p := range pods {
		if _, known := k.workers.State(p.UID); known || k.pod(p.UID) != nil || p.Name == "" {
			continue
		}
		k.log.Info("a pod in the container runtime is known to no source, it is ended", "pod", p.Namespace+"/"+p.Name, "uid", p.UID)
		one := int64(1)
		k.workers.Remove(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID},
			Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &one}})
	}
}

// housekeeping removes what nobody uses any more: dead containers, directories and cgroups of pods that are gone, images.
func (k *Kubelet) housekeeping(ctx context.Context) error {
	clean, image := time.NewTicker(cleanPeriod), time.NewTicker(imagePeriod)
	defer clean.Stop()
	defer image.Stop()
	known := map[string]images.Seen{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-clean.C:
			if k.Synced() {
				k.clean(ctx)
			}
		case <-image.C:
			var err error
			if known, err = k.cleanImages(ctx, known); err != nil && ctx.Err() == nil {
				k.log.Warn("images not cleaned up", "err", err)
			}
		}
	}
}

func (k *Kubelet) clean(ctx context.Context) {
	states := k.workers.Live()
	running, traces := map[types.UID]bool{}, map[types.UID]bool{}
	for uid, s := range states {
		traces[uid] = true
		if s < podworker.Finished {
			running[uid] = true
		}
	}
	k.mu.Lock()
	for uid := range k.pods {
		traces[uid] = true
		if _, ok := states[uid]; !ok {
			running[uid] = true
		}
	}
	k.mu.Unlock()
	for what, err := range map[string]error{
		"dead containers":      k.cleanContainers(ctx),
		"directories of pods":  k.volumes.Cleanup(ctx, traces),
		"cgroups of pods":      k.cgroups.Reconcile(ctx, running),
		"logs of pods":         k.cleanLogs(traces),
		"cgroups' CPU of pods": k.cgroups.UpdateQoS(k.active()),
	} {
		if err != nil && ctx.Err() == nil {
			k.log.Warn("cleaning up failed", "what", what, "err", err)
		}
	}
}

// cleanContainers keeps one dead container per name, for its logs and its last state, and the newest sandbox of a pod.
func (k *Kubelet) cleanContainers(ctx context.Context) error {
	pods, err := k.cri.Pods(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pods {
		for _, c := range excess(p) {
			errs = append(errs, k.cri.RemoveContainer(ctx, c.ID.ID), k.removeLog(p, c))
		}
		for i, s := range p.Sandboxes {
			if i > 0 && !s.Ready && !used(p, s.ID) {
				errs = append(errs, k.cri.RemoveSandbox(ctx, s.ID))
			}
		}
	}
	return errors.Join(errs...)
}

// excess lists the dead containers beyond the newest one of each name, besides the one that is current.
func excess(p *runtime.PodStatus) []runtime.Container {
	seen := map[string]int{}
	var out []runtime.Container
	for i, c := range p.Containers {
		if c.State == runtime.StateExited && seen[c.Name] > 0 && deadBefore(p, i) {
			out = append(out, c)
		}
		seen[c.Name]++
	}
	return out
}

// deadBefore tells whether a newer container of the same name has ended too.
func deadBefore(p *runtime.PodStatus, i int) bool {
	for j := range i {
		if p.Containers[j].Name == p.Containers[i].Name && p.Containers[j].State == runtime.StateExited {
			return true
		}
	}
	return false
}

func used(p *runtime.PodStatus, sandbox string) bool {
	for _, c := range p.Containers {
		if c.SandboxID == sandbox {
			return true
		}
	}
	return false
}

func (k *Kubelet) removeLog(p *runtime.PodStatus, c runtime.Container) error {
	base := filepath.Join(cri.LogDirectory(k.cfg.PodLogsDir, p.Namespace, p.Name, p.UID), c.Name, fmt.Sprintf("%d.log", c.Attempt))
	files, err := filepath.Glob(base + "*")
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range append(files, k.logLink(p.Name, p.Namespace, c.Name, c.ID.ID)) {
		if err := os.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (k *Kubelet) logLink(pod, namespace, container, id string) string {
	return filepath.Join(k.cfg.ContainerLogsDir, pod+"_"+namespace+"_"+container+"-"+id+".log")
}

// removeLogs removes a gone pod's logs and the links to them.
func (k *Kubelet) removeLogs(pod *corev1.Pod) error {
	dir := cri.LogDirectory(k.cfg.PodLogsDir, pod.Namespace, pod.Name, pod.UID)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the pod's logs: %w", err)
	}
	return k.removeDeadLinks()
}

// removeDeadLinks removes links to logs that are gone.
func (k *Kubelet) removeDeadLinks() error {
	links, err := os.ReadDir(k.cfg.ContainerLogsDir)
	if err != nil {
		return fmt.Errorf("read the directory of container logs: %w", err)
	}
	for _, l := range links {
		path := filepath.Join(k.cfg.ContainerLogsDir, l.Name())
		if l.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// cleanLogs removes the logs of pods that are not live.
func (k *Kubelet) cleanLogs(live map[types.UID]bool) error {
	dirs, err := os.ReadDir(k.cfg.PodLogsDir)
	if err != nil {
		return fmt.Errorf("read the directory of pod logs: %w", err)
	}
	for _, d := range dirs {
		parts := strings.SplitN(d.Name(), "_", 3)
		if len(parts) != 3 || live[types.UID(parts[2])] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(k.cfg.PodLogsDir, d.Name())); err != nil {
			return err
		}
	}
	return k.removeDeadLinks()
}
