package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cgroupRoot is where the hierarchies are mounted. In each of them a group called as the cluster's mark holds every process of
// the cluster.
const cgroupRoot = "/sys/fs/cgroup"

// unified tells whether the machine has cgroup v2 only.
func unified() bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return err == nil
}

// hierarchies returns the mount points of all hierarchies: one on v2, one per controller set (and the hybrid's) on v1.
func hierarchies() ([]string, error) {
	if unified() {
		return []string{cgroupRoot}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", cgroupRoot, err)
	}
	var out []string
	for _, e := range entries {
		path := filepath.Join(cgroupRoot, e.Name())
		if _, err := os.Stat(filepath.Join(path, "cgroup.procs")); err == nil && e.Type()&fs.ModeSymlink == 0 {
			out = append(out, path)
		}
	}
	return out, nil
}

// makeCgroup makes the group at path, below the cluster's own, in every hierarchy. On v1 a cpuset starts empty and would hold
// no process; on v2 the parents hand their controllers down.
func makeCgroup(mark, path string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		group := root
		for _, part := range strings.Split(filepath.Join(mark, path), "/") {
			if unified() {
				if err := delegate(group); err != nil {
					return err
				}
			}
			parent := group
			group = filepath.Join(group, part)
			if err := os.MkdirAll(group, 0o755); err != nil {
				return fmt.Errorf("make the cgroup: %w", err)
			}
			if err := inheritCpuset(parent, group); err != nil {
				return err
			}
		}
	}
	return nil
}

// delegate hands all controllers of a v2 group to its children.
func delegate(group string) error {
	data, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(data)) {
		// A controller that cannot be delegated (cpuset.partition, rdma on some kernels) is not needed.
		if err := os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+controller), 0); errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("hand the controllers of %s down: %w: it has processes of its own", group, err)
		}
	}
	return nil
}

func inheritCpuset(parent, group string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(group, file))
		if err != nil || unified() {
			return ignoreMissing(err)
		}
		if strings.TrimSpace(string(own)) != "" {
			continue
		}
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(group, file), value, 0); err != nil {
			return fmt.Errorf("fill %s: %w", file, err)
		}
	}
	return nil
}

// enterCgroup moves this process into the group at path, so that it and its children are not accounted to whoever started
// the cluster.
func enterCgroup(mark, path string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := os.WriteFile(filepath.Join(root, mark, path, "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("enter the cgroup %s: %w", path, err)
		}
	}
	return nil
}

// cgroupProcesses returns the processes in the cluster's groups, in any hierarchy: all that the cluster runs, for a process is
// in its parent's group until somebody moves it, and inside a node nobody can move it out of the node's.
func (c Config) cgroupProcesses() ([]int, error) {
	roots, err := hierarchies()
	if err != nil {
		return nil, err
	}
	found := map[int]bool{}
	for _, root := range roots {
		err := filepath.WalkDir(filepath.Join(root, c.mark()), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Name() != "cgroup.procs" {
				return ignoreMissing(err) // a group may go while we look
			}
			data, err := os.ReadFile(path)
			if errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EOPNOTSUPP) { // it went; or a threaded group, listed above
				return nil
			}
			for _, field := range strings.Fields(string(data)) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 { // 0 is a process that cannot be seen from here
					found[pid] = true
				}
			}
			return ignoreMissing(err)
		})
		if err != nil {
			return nil, fmt.Errorf("list the processes of the cluster's cgroups: %w", err)
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// removeRetry is how often the removal of a busy group is tried again.
const removeRetry = 10 * time.Millisecond

// removeCgroups removes all of the cluster's groups, waiting up to patience for the last dying processes to leave them.
func (c Config) removeCgroups(ctx context.Context, patience time.Duration) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var errs []error
	for _, root := range roots {
		errs = append(errs, removeGroup(ctx, filepath.Join(root, c.mark())))
	}
	return errors.Join(errs...)
}

// removeGroup removes a group and those below it. The kernel has no notice of a v1 group becoming empty, so a busy group is
// tried again until ctx ends.
func removeGroup(ctx context.Context, group string) error {
	entries, err := os.ReadDir(group)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeGroup(ctx, filepath.Join(group, e.Name())); err != nil {
				return err
			}
		}
	}
	retry := time.NewTicker(removeRetry)
	defer retry.Stop()
	for {
		err := syscall.Rmdir(group)
		if err == nil || errors.Is(err, syscall.ENOENT) {
			return nil
		}
		err = fmt.Errorf("remove the cgroup %s: %w", group, err)
		if !errors.Is(err, syscall.EBUSY) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-retry.C:
		}
	}
}
