package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/mount-utils"
)

// tree is where cgroups are made: in one directory with cgroup v2, in one for each controller (or group of them) with
// v1. It is read once and does not change afterwards.
type tree struct {
	v2     bool
	mounts []string          // of all hierarchies, each once
	by     map[string]string // v1: controller -> mount point
}

// findTree reads the mounts of cgroup file systems. Hosts that have both versions (hybrid) count as v1, because their
// controllers are there.
func findTree(mountinfo string) (*tree, error) {
	infos, err := mount.ParseMountInfo(mountinfo)
	if err != nil {
		return nil, fmt.Errorf("read the mounts: %w", err)
	}
	t := &tree{by: map[string]string{}}
	unified := ""
	seen := map[string]bool{}
	for _, i := range infos {
		switch i.FsType {
		case "cgroup2":
			unified = i.MountPoint
		case "cgroup":
			key := strings.Join(i.SuperOptions, ",")
			if seen[key] { // the same hierarchy mounted twice
				continue
			}
			seen[key] = true
			t.mounts = append(t.mounts, i.MountPoint)
			for _, o := range i.SuperOptions {
				t.by[o] = i.MountPoint
			}
		}
	}
	switch {
	case len(t.mounts) == 0 && unified == "":
		return nil, errors.New("no cgroup file system is mounted")
	case len(t.mounts) == 0:
		t.v2 = true
		t.mounts = []string{unified}
	case unified != "":
		t.mounts = append(t.mounts, unified)
	}
	return t, nil
}

// version is 1 or 2.
func (t *tree) version() int {
	if t.v2 {
		return 2
	}
	return 1
}

// file returns the path of a controller's file in a cgroup, "" if the host has no such controller.
func (t *tree) file(controller, cgroup, name string) string {
	m := t.by[controller]
	if t.v2 {
		m = t.mounts[0]
	}
	if m == "" {
		return ""
	}
	return filepath.Join(m, cgroup, name)
}

// create makes the cgroup and its ancestors in every hierarchy. Those that exist stay as they are. It goes from the
// outside in, because v2 gives a cgroup only the controllers that its parent has enabled in subtree_control. A failure
// leaves the ancestors that were made; the next try finds them and goes on.
func (t *tree) create(cgroup string) error {
	for _, m := range t.mounts {
		dir := m
		for part := range strings.SplitSeq(strings.Trim(cgroup, "/"), "/") {
			if t.v2 {
				enableControllers(dir)
			}
			dir = filepath.Join(dir, part)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("make the cgroup %s: %w", dir, err)
			}
			if m == t.by["cpuset"] && !t.v2 {
				if err := inheritCpuset(dir); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// enableControllers passes all controllers of a v2 cgroup on to its children. One that cannot be enabled (the cgroup
// has processes, or the kernel lacks it) is missing in the children too; apply skips its files. It writes one
// controller at a time: the kernel refuses a whole write if one of several cannot be enabled.
func enableControllers(dir string) {
	have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return
	}
	for _, c := range strings.Fields(string(have)) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644)
	}
}

// inheritCpuset fills in a v1 cpuset from its parent: without CPUs and memory nodes no process can enter.
func inheritCpuset(dir string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		now, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || strings.TrimSpace(string(now)) != "" {
			if err != nil {
				return fmt.Errorf("read the cpuset: %w", err)
			}
			continue
		}
		from, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name))
		if err != nil {
			return fmt.Errorf("read the parent's cpuset: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), from, 0o644); err != nil {
			return fmt.Errorf("fill in the cpuset: %w", err)
		}
	}
	return nil
}

// setting is one file and what is written to it.
type setting struct{ controller, file, value string }

// memsw is v1's limit of memory and swap together. The kernel never lets it be below the limit of memory, so the order
// of the two writes depends on the direction. It exists only where swap is accounted.
const memsw = "memory.memsw.limit_in_bytes"

// present is what a cgroup has, on which the order of writes depends: its limit of memory, in bytes, and the period of
// its CPU quota, in µs.
type present struct{ memory, cpuPeriod int64 }

// settings returns the writes that give a cgroup its values, in order. It is pure. Zero in a value means that the file
// stays as it is.
func (t *tree) settings(v values, has present) []setting {
	var out []setting
	add := func(c, f, val string) { out = append(out, setting{c, f, val}) }
	num := func(n int64) string { return strconv.FormatInt(n, 10) }
	if v.cpuShares > 0 && t.v2 {
		add("cpu", "cpu.weight", strconv.FormatUint(weight(v.cpuShares), 10))
	} else if v.cpuShares > 0 {
		add("cpu", "cpu.shares", strconv.FormatUint(v.cpuShares, 10))
	}
	switch {
	case v.cpuQuota < 0 && t.v2:
		add("cpu", "cpu.max", "max "+num(v.period()))
	case v.cpuQuota > 0 && t.v2:
		add("cpu", "cpu.max", num(v.cpuQuota)+" "+num(v.period()))
	case v.cpuQuota < 0:
		add("cpu", "cpu.cfs_quota_us", "-1")
	case v.cpuQuota > 0:
		// The kernel refuses, at each write, a quota that is a smaller part of its period than that of a cgroup below.
		if has.cpuPeriod != v.period() {
			add("cpu", "cpu.cfs_quota_us", "-1")
		}
		add("cpu", "cpu.cfs_period_us", num(v.period()))
		add("cpu", "cpu.cfs_quota_us", num(v.cpuQuota))
	}
	switch limited := v.memory > 0; {
	case v.memory < 0 && t.v2:
		add("memory", "memory.max", "max")
	case v.memory < 0:
		add("memory", "memory.limit_in_bytes", "-1")
	case limited && t.v2:
		add("memory", "memory.max", num(v.memory))
	case limited && v.noSwap && v.memory > has.memory:
		add("memory", memsw, num(v.memory))
		add("memory", "memory.limit_in_bytes", num(v.memory))
	case limited && v.noSwap:
		add("memory", "memory.limit_in_bytes", num(v.memory))
		add("memory", memsw, num(v.memory))
	case limited:
		add("memory", "memory.limit_in_bytes", num(v.memory))
	}
	if v.protected != nil && t.v2 {
		add("memory", "memory.min", num(v.protected.Min))
		add("memory", "memory.low", num(v.protected.Low))
	}
	switch {
	case v.high > 0 && t.v2:
		add("memory", "memory.high", num(v.high))
	case v.high < 0 && t.v2:
		add("memory", "memory.high", "max")
	}
	switch {
	case v.swap > 0 && t.v2:
		add("memory", "memory.swap.max", num(v.swap))
	case v.noSwap && t.v2:
		add("memory", "memory.swap.max", "0")
	case v.noSwap: // for those without a limit; what is made in the cgroup inherits it
		add("memory", "memory.swappiness", "0")
	}
	if v.pids > 0 {
		add("pids", "pids.max", num(v.pids))
	}
	return out
}

// hugePages returns the writes that give a cgroup its huge pages, of each size that the kernel has: what may be used,
// and what may be reserved.
func (t *tree) hugePages(cgroup string, v values) (out []setting) {
	const prefix = "hugetlb."
	suffix := ".limit_in_bytes"
	if t.v2 {
		suffix = ".max"
	}
	if v.hugePages == nil {
		return nil
	}
	files, _ := filepath.Glob(t.file("hugetlb", cgroup, prefix+"*"+suffix)) // the pattern is right
	for _, f := range files {
		name := filepath.Base(f)
		size := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(name, prefix), suffix), ".rsvd")
		out = append(out, setting{"hugetlb", name, strconv.FormatInt(v.hugePages[size], 10)})
	}
	return out
}

// apply writes the values. Files that the kernel does not have are skipped. It stops at the first failure, and what was
// written before stays.
func (t *tree) apply(cgroup string, v values) error {
	memory, _ := readNumber(t.file("memory", cgroup, "memory.limit_in_bytes")) // none to be read: none that counts
	has := present{memory: int64(min(memory, math.MaxInt64)), cpuPeriod: t.cpuPeriod(cgroup)}
	all := append(t.settings(v, has), t.hugePages(cgroup, v)...)
	for _, s := range all {
		path := t.file(s.controller, cgroup, s.file)
		if path == "" {
			continue
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", path, err)
		}
		_, err = f.WriteString(s.value)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if s.file == memsw && errors.Is(err, syscall.EBUSY) {
			continue // more was swapped out before it was forbidden than can come back now
		}
		if err != nil {
			return fmt.Errorf("write %s to %s: %w", s.value, path, err)
		}
	}
	return nil
}
