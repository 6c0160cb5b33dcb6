package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/pidfd"
)

// How long a removal is retried while killed processes exit, and how often. A process in the kernel may take long to
// die.
const (
	removePatience = 10 * time.Second
	removeRetry    = 10 * time.Millisecond
)

// remove kills what is left in the cgroup and below it and removes it from every hierarchy. It removes first and kills
// only if that fails, since a cgroup without processes is the usual case. Rmdir fails with EBUSY while a process is
// inside, also one that was killed and has not exited yet. Hence the loop. After removePatience what is left stays, and
// the caller gets the error of the last try.
func (t *tree) remove(ctx context.Context, cgroup string) error {
	ctx, cancel := context.WithTimeout(ctx, removePatience)
	defer cancel()
	retry := time.NewTicker(removeRetry)
	defer retry.Stop()
	for {
		var busy error
		for _, m := range t.mounts {
			if err := removeDir(filepath.Join(m, cgroup)); err != nil {
				busy = err
			}
		}
		if busy == nil {
			return nil
		}
		for _, m := range t.mounts {
			if err := killAll(filepath.Join(m, cgroup)); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove the cgroup %s: %w", cgroup, busy)
		case <-retry.C:
		}
	}
}

// removeDir removes a cgroup and those below it, the innermost first. The kernel removes their files. A hierarchy in
// which the cgroup does not exist counts as done.
func removeDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() {
			errs = append(errs, removeDir(filepath.Join(dir, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := syscall.Rmdir(dir); err != nil && err != syscall.ENOENT {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

// Kill kills every process of the pod. It is for an eviction that cannot wait for the runtime, whose own programs start
// too slowly, or not at all, when the machine has no memory or no process numbers left.
func (m *Manager) Kill(pod *corev1.Pod) error {
	if err := checkUID(pod.UID); err != nil {
		return err
	}
	var errs []error
	for _, mount := range m.tree.mounts {
		errs = append(errs, killAll(filepath.Join(mount, m.path(pod))))
	}
	return errors.Join(errs...)
}

// killAll kills every process in the cgroup and below it. Cgroup v2 does it at once, so that none escapes by a fork.
// With v1, and on kernels before 5.14, a process that forks may escape one round, and the next round finds its child.
// The kubelet itself is spared. A cgroup that does not exist counts as done.
func killAll(dir string) error {
	err := killAtOnce(dir)
	if err != nil {
		err = killEach(dir)
	}
	// ENODEV is the kernel's answer when the cgroup is removed at this moment.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return nil
	}
	return err
}

// killAtOnce fails where the kernel has no such file.
func killAtOnce(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "cgroup.kill"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("1")
	return errors.Join(err, f.Close())
}

// killEach sends SIGKILL to the processes that a cgroup and those below it name.
func killEach(dir string) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "cgroup.procs" {
			return err
		}
		return pidfd.SignalListed(func() ([]int, error) { return mortals(p) }, syscall.SIGKILL)
	})
}

// mortals returns the processes that a file cgroup.procs names, except for the init process and the kubelet.
func mortals(procs string) (pids []int, err error) {
	data, err := os.ReadFile(procs)
	for _, s := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(s); err == nil && pid > 1 && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, err
}
