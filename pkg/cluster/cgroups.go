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
// the cluster: at the root, or on v2 in a group that systemd has delegated (delegated).
const cgroupRoot = "/sys/fs/cgroup"

// controlPlaneGroup is the group of the supervisor and the control plane, beside those of the nodes, which are called as the nodes.
const controlPlaneGroup = "control-plane"

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

// cgroups are the control groups of a cluster, which hold every process of it: a tree in each hierarchy.
type cgroups struct {
	trees   []string // the directories of the trees' roots, which are called as the cluster's mark
	unified bool     // cgroup v2
}

// cgroups are the cluster's, wherever an earlier life or another process has made them.
func (c Config) cgroups() (cgroups, error) {
	g := cgroups{unified: unified()}
	if g.unified {
		var err error
		g.trees, err = treesBelow(cgroupRoot, c.mark())
		return g, err
	}
	roots, err := hierarchies()
	for _, root := range roots {
		g.trees = append(g.trees, filepath.Join(root, c.mark()))
	}
	return g, err
}

// cgroupsBelow are the groups of a life of the cluster that begins: on v2 below parent.
func (c Config) cgroupsBelow(parent string) (cgroups, error) {
	if unified() {
		return cgroups{trees: []string{filepath.Join(parent, c.mark())}, unified: true}, nil
	}
	return c.cgroups()
}

// treesBelow returns the groups that are called as the mark, at root and below it, but for what is in the groups of a cluster.
func treesBelow(root, mark string) ([]string, error) {
	var trees []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return ignoreMissing(err) // a group may go while we look
		case !d.IsDir():
			return nil
		case d.Name() == mark:
			trees = append(trees, path)
			return fs.SkipDir
		case markIn(d.Name()) != "":
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for the cluster's cgroups: %w", err)
	}
	return trees, nil
}

// make makes the group at path in every tree. On v1 a cpuset starts empty and would hold no process.
func (g cgroups) make(path string) error {
	for _, tree := range g.trees {
		group := filepath.Dir(tree)
		for _, part := range strings.Split(filepath.Join(filepath.Base(tree), path), "/") {
			parent := group
			group = filepath.Join(group, part)
			if err := os.MkdirAll(group, 0o755); err != nil {
				return fmt.Errorf("make the cgroup: %w", err)
			}
			if g.unified {
				continue
			}
			if err := inheritCpuset(parent, group); err != nil {
				return err
			}
		}
	}
	return nil
}

// handDown gives the groups of the trees, on v2, the controllers that their parents have. No process may be in the parents then.
func (g cgroups) handDown() error {
	if !g.unified {
		return nil
	}
	for _, tree := range g.trees {
		if err := errors.Join(delegate(filepath.Dir(tree)), delegate(tree)); err != nil {
			return err
		}
	}
	return nil
}

// renew makes the group at path anew, without the processes and groups that are in it, in at most patience. On v2 a group that has handed its
// controllers down, as a node's does for its pods, takes no process any more: the next life needs another one.
func (g cgroups) renew(ctx context.Context, path string, patience time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the cgroup %s has processes that do not die within %s of SIGKILL", path, patience))
	defer cancel()
	return errors.Join(g.kill(ctx, path), g.remove(ctx, path), g.make(path))
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
		if err != nil {
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

// enter moves this process into the group at path, so that it and its children are not accounted to whoever started the cluster.
func (g cgroups) enter(path string) error {
	for _, tree := range g.trees {
		if err := os.WriteFile(filepath.Join(tree, path, "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("enter the cgroup %s: %w", path, err)
		}
	}
	return nil
}

// processes returns the processes in the group at path and below it, in any tree: those of "" are all that the cluster runs, for a process
// is in its parent's group until somebody moves it, and inside a node nobody can move it out of the node's.
func (g cgroups) processes(path string) ([]int, error) {
	found := map[int]bool{}
	for _, tree := range g.trees {
		err := filepath.WalkDir(filepath.Join(tree, path), func(path string, d fs.DirEntry, err error) error {
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

// retryBusy is how often processes are killed again, and a busy group's removal is tried again.
const retryBusy = 10 * time.Millisecond

// kill kills every process in the group at path and below it until there is none, or ctx ends.
func (g cgroups) kill(ctx context.Context, path string) error {
	var left []int
	err := poll(ctx, retryBusy, func() (bool, error) {
		var err error
		if left, err = g.processes(path); err != nil {
			return false, err
		}
		for _, pid := range left {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return false, fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
		return len(left) == 0, nil
	})
	if err == nil || ctx.Err() == nil {
		return err
	}
	var names []string
	for _, pid := range left {
		names = append(names, fmt.Sprintf("%s (%d)", processName(pid), pid))
	}
	return fmt.Errorf("%w: %s", err, strings.Join(names, ", "))
}

// remove removes the group at path and those below it, waiting until ctx ends for the last dying processes to leave them.
func (g cgroups) remove(ctx context.Context, path string) error {
	var errs []error
	for _, tree := range g.trees {
		errs = append(errs, removeGroup(ctx, filepath.Join(tree, path)))
	}
	return errors.Join(errs...)
}

// exist reports whether the cluster has groups.
func (g cgroups) exist() bool {
	return slices.ContainsFunc(g.trees, func(tree string) bool { return statError(tree) == nil })
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
	retry := time.NewTicker(retryBusy)
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
