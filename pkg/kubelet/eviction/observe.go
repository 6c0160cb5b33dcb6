package eviction

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"bonsai/pkg/kubelet/eviction/pressure"
	"bonsai/pkg/kubelet/runtime"
)

// Observer observes the machine. Everything is required. It keeps nothing between two observations.
type Observer struct {
	// Root is where /proc is found, "/" except in tests.
	Root string
	// Dir is the kubelet's directory.
	Dir string
	// Filesystems returns where the runtime keeps its files.
	Filesystems func(ctx context.Context) (runtime.Filesystems, error)
	// Pods returns the memory of all pods together: the working set, and what is left of their limit; false without a
	// limit.
	Pods func() (used, available int64, limited bool, err error)
	// Memory returns the node's memory, and how much of it is its working set.
	Memory func() (capacity, used int64, err error)
}

// Observe returns what is left now. What cannot be observed is left out and reported in the error: the caller decides
// about the rest. The runtime, which is asked about disks, may take long on a machine without memory, so the memory
// comes last: what is said of it is true when Observe returns.
func (o Observer) Observe(ctx context.Context) (pressure.Observations, Disks, error) {
	seen := pressure.Observations{}
	disks, err := o.disks(ctx, seen)
	return seen, disks, errors.Join(err, o.processes(seen), o.memory(seen))
}

// memory observes the memory of the node and of all pods together. The pods' own limit may be reached while the node
// has memory left, hence two observations.
func (o Observer) memory(seen pressure.Observations) error {
	capacity, used, err := o.Memory()
	if err != nil {
		return fmt.Errorf("observe the memory: %w", err)
	}
	seen[pressure.MemoryAvailable] = pressure.Observation{Available: capacity - min(used, capacity), Capacity: capacity}
	used, available, limited, err := o.Pods()
	if err != nil {
		return fmt.Errorf("observe the memory of all pods: %w", err)
	}
	if limited {
		seen[pressure.AllocatableMemoryAvailable] = pressure.Observation{Available: available,
			Capacity: used + available}
	}
	return nil
}

// disks observes the file systems of the kubelet and of the runtime. That of the images has thresholds of its own, so
// it is reported even if it is the same. If the runtime does not answer, the node's own file system is already in seen.
func (o Observer) disks(ctx context.Context, seen pressure.Observations) (d Disks, err error) {
	node, err := device(o.Dir, seen, pressure.NodeFsAvailable, pressure.NodeFsInodesFree)
	if err != nil {
		return d, err
	}
	where, err := o.Filesystems(ctx)
	if err != nil {
		return d, err
	}
	images, err := device(where.Images, seen, pressure.ImageFsAvailable, pressure.ImageFsInodesFree)
	if err != nil {
		return d, err
	}
	layers, err := device(where.Containers, nil)
	return Disks{ImagesApart: images != node, LayersApart: layers != node}, err
}

// device measures the file system of a directory and returns its device number, which tells file systems apart.
func device(dir string, seen pressure.Observations, signals ...pressure.Signal) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("observe the file system of %s: %w", dir, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return 0, fmt.Errorf("observe the file system of %s: %w", dir, err)
	}
	for i, o := range []pressure.Observation{
		{Available: int64(fs.Bavail) * fs.Bsize, Capacity: int64(fs.Blocks) * fs.Bsize},
		{Available: int64(fs.Ffree), Capacity: int64(fs.Files)},
	} {
		if i < len(signals) && o.Capacity > 0 { // some file systems do not count inodes
			seen[signals[i]] = o
		}
	}
	return uint64(st.Dev), nil
}

// processes observes how many more processes there may be: the lower of the kernel's two limits minus all threads. The
// kernel counts threads against both limits, and /proc/loadavg shows all threads in its fourth field.
func (o Observer) processes(seen pressure.Observations) error {
	most, err := o.number("sys/kernel/pid_max")
	if err != nil {
		return err
	}
	if threads, err := o.number("sys/kernel/threads-max"); err == nil {
		most = min(most, threads)
	}
	load, err := o.read("loadavg") // 0.01 0.02 0.00 <running>/<all> <last pid>
	if err != nil {
		return err
	}
	f := strings.Fields(load)
	if len(f) < 4 {
		return fmt.Errorf("observe the processes: %q", load)
	}
	_, all, _ := strings.Cut(f[3], "/")
	n, err := strconv.ParseInt(all, 10, 64)
	if err != nil {
		return fmt.Errorf("observe the processes: %w", err)
	}
	seen[pressure.PIDAvailable] = pressure.Observation{Available: most - min(n, most), Capacity: most}
	return nil
}

func (o Observer) number(file string) (int64, error) {
	text, err := o.read(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

func (o Observer) read(file string) (string, error) {
	b, err := os.ReadFile(filepath.Join(o.Root, "proc", file))
	if err != nil {
		return "", fmt.Errorf("observe the processes: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
