package cgroup

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

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/pidfd"
)

// Root is where the hierarchies are mounted. The trees of clusters are directly below it or, on v2, in a group that
// systemd has delegated.
const Root = "/sys/fs/cgroup"

// ControlPlane is the group of the supervisor and the control plane in a cluster's tree. Beside it are the groups of
// the nodes, which have the nodes' names. No node can have this name, because a node's name has no underscore: the
// start of a node kills whatever is in the node's group.
const ControlPlane = "control_plane"

// IsUnified reports whether the machine has cgroup v2 only.
func IsUnified() bool {
	_, err := os.Stat(filepath.Join(Root, "cgroup.controllers"))
	return err == nil
}

// Hierarchies returns the mount points of all hierarchies: one on v2; on v1 one per set of controllers, and the
// hybrid's v2 one.
func Hierarchies() ([]string, error) {
	if IsUnified() {
		return []string{Root}, nil
	}
	entries, err := os.ReadDir(Root)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", Root, err)
	}
	var out []string
	for _, e := range entries {
		path := filepath.Join(Root, e.Name())
		if _, err := os.Stat(filepath.Join(path, "cgroup.procs")); err == nil && e.Type()&fs.ModeSymlink == 0 {
			out = append(out, path)
		}
	}
	return out, nil
}

// Groups are the control groups of one cluster: a tree in each hierarchy. A path of "" is the whole tree.
type Groups struct {
	Trees   []string // the directories of the trees' roots; their names are the cluster's mark
	Unified bool     // cgroup v2
}

// Find returns the groups of the cluster with the mark, wherever an earlier life or another process has made them.
func Find(mark string) (Groups, error) {
	g := Groups{Unified: IsUnified()}
	if g.Unified {
		var err error
		g.Trees, err = TreesBelow(Root, mark)
		return g, err
	}
	roots, err := Hierarchies()
	for _, root := range roots {
		g.Trees = append(g.Trees, filepath.Join(root, mark))
	}
	return g, err
}

// Below returns the groups for a life of the cluster that is about to begin. On v2 they are below the group parent.
func Below(parent, mark string) (Groups, error) {
	if IsUnified() {
		return Groups{Trees: []string{filepath.Join(parent, mark)}, Unified: true}, nil
	}
	return Find(mark)
}

// TreesBelow returns the groups with the name mark at root and below. It does not look into the groups of clusters,
// neither this one's nor others': pods may make groups of any name there.
func TreesBelow(root, mark string) ([]string, error) {
	var trees []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return host.IgnoreMissing(err) // a group may go while we look
		case !d.IsDir():
			return nil
		case d.Name() == mark:
			trees = append(trees, path)
			return fs.SkipDir
		case isAlike(d.Name(), mark):
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for the cluster's cgroups: %w", err)
	}
	return trees, nil
}

// isAlike reports whether a name is another cluster's mark: as long as this one, and with the same beginning.
func isAlike(name, mark string) bool {
	return len(name) == len(mark) && strings.HasPrefix(name, mark[:strings.LastIndexByte(mark, '-')+1])
}

// Make makes the group at path in every tree. On v1 a new cpuset is empty and would accept no process, so Make fills it
// from its parent.
func (g Groups) Make(path string) error {
	for _, tree := range g.Trees {
		group := filepath.Dir(tree)
		for _, part := range strings.Split(filepath.Join(filepath.Base(tree), path), "/") {
			parent := group
			group = filepath.Join(group, part)
			if err := os.MkdirAll(group, 0o755); err != nil {
				return fmt.Errorf("make the cgroup: %w", err)
			}
			if g.Unified {
				continue
			}
			if err := inheritCpuset(parent, group); err != nil {
				return err
			}
		}
	}
	return nil
}

// HandDown gives the trees, on v2, the controllers that their parents have, and that of huge pages. The kernel refuses
// that while a process is in one of the parents.
func (g Groups) HandDown() error {
	if !g.Unified {
		return nil
	}
	for _, tree := range g.Trees {
		if err := handHugePagesDown(filepath.Dir(tree)); err != nil {
			return err
		}
		if err := errors.Join(Delegate(filepath.Dir(tree)), Delegate(tree)); err != nil {
			return err
		}
	}
	return nil
}

// handHugePagesDown gives the v2 group at path the controller of huge pages, from the outermost group inwards. systemd,
// which hands down what a unit asks for, does not know that controller, and leaves it as it is. A group with processes
// cannot hand it down: then pods share the machine's huge pages without limits.
func handHugePagesDown(path string) error {
	var groups []string
	for ; host.StatError(filepath.Join(path, "cgroup.controllers")) == nil; path = filepath.Dir(path) {
		groups = append(groups, path)
	}
	for _, group := range slices.Backward(groups) {
		has, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
		if err != nil || !slices.Contains(strings.Fields(string(has)), "hugetlb") {
			return err
		}
		err = os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+hugetlb"), 0)
		if errors.Is(err, syscall.EBUSY) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("hand the huge pages of the cgroup %s down: %w", group, err)
		}
	}
	return nil
}

// Renew replaces the group at path with an empty one within patience, and kills the processes in it. On v2 a group that
// has handed its controllers down, as a node's does for its pods, accepts no process any more: the next life of the
// node needs a new group.
func (g Groups) Renew(ctx context.Context, path string, patience time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("the cgroup %s has processes that do not die within %s of SIGKILL", path, patience))
	defer cancel()
	return errors.Join(g.Kill(ctx, path), g.Remove(ctx, path), g.Make(path))
}

// Delegate hands all controllers of a v2 group to its children.
func Delegate(group string) error {
	data, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(data)) {
		// A controller that cannot be delegated (cpuset.partition, rdma on some kernels) is not needed.
		if err := os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+controller),
			0); errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("hand the controllers of %s down: %w: it has processes of its own", group, err)
		}
	}
	return nil
}

// inheritCpuset gives a v1 group the CPUs and memory nodes of its parent, unless it has some.
func inheritCpuset(parent, group string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(group, file))
		if err != nil {
			return host.IgnoreMissing(err)
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

// Enter moves this process into the group at path. From then on, it and its children are not accounted to whoever
// started the cluster.
func (g Groups) Enter(path string) error {
	for _, tree := range g.Trees {
		if err := os.WriteFile(filepath.Join(tree, path, "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("enter the cgroup %s: %w", path, err)
		}
	}
	return nil
}

// Processes returns the pids in the group at path and below it, in any tree, in order.
func (g Groups) Processes(path string) ([]int, error) {
	found := map[int]bool{}
	for _, tree := range g.Trees {
		err := filepath.WalkDir(filepath.Join(tree, path), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Name() != "cgroup.procs" {
				return host.IgnoreMissing(err) // a group may go while we look
			}
			data, err := os.ReadFile(path)
			// It went; or a threaded group, listed above.
			if errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EOPNOTSUPP) {
				return nil
			}
			for _, field := range strings.Fields(string(data)) {
				// 0 is a process that cannot be seen from here
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
					found[pid] = true
				}
			}
			return host.IgnoreMissing(err)
		})
		if err != nil {
			return nil, fmt.Errorf("list the processes of the cluster's cgroups: %w", err)
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// RetryBusy is the time between two attempts to kill processes or to remove a busy group.
const RetryBusy = 10 * time.Millisecond

// KillPatience bounds the kernel's time to end killed processes and to empty their groups.
const KillPatience = 20 * time.Second

// Kill kills every process in the group at path and below it until there is none, or ctx ends. It repeats itself
// because a process may fork while it is being killed. The error names the processes that are left.
func (g Groups) Kill(ctx context.Context, path string) error {
	var left []int
	list := func() (_ []int, err error) {
		left, err = g.Processes(path)
		return left, err
	}
	err := host.Poll(ctx, RetryBusy, func() (bool, error) {
		err := pidfd.SignalListed(list, syscall.SIGKILL)
		return err == nil && len(left) == 0, err
	})
	if err == nil || ctx.Err() == nil {
		return err
	}
	var names []string
	for _, pid := range left {
		names = append(names, fmt.Sprintf("%s (%d)", host.ProcessName(pid), pid))
	}
	return fmt.Errorf("%w: %s", err, strings.Join(names, ", "))
}

// Remove removes the group at path and those below it. Until ctx ends, it waits for the last dying processes to leave
// them.
func (g Groups) Remove(ctx context.Context, path string) error {
	var errs []error
	for _, tree := range g.Trees {
		errs = append(errs, removeGroup(ctx, filepath.Join(tree, path)))
	}
	return errors.Join(errs...)
}

// Exist reports whether any of the trees is there.
func (g Groups) Exist() bool {
	return slices.ContainsFunc(g.Trees, func(tree string) bool { return host.StatError(tree) == nil })
}

// removeGroup removes a group and those below it. The kernel gives no notice when a v1 group becomes empty, so the
// removal of a busy group is tried again until ctx ends.
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
	retry := time.NewTicker(RetryBusy)
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
