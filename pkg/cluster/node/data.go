package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// A node sees its own part of the data directory: its directories and its credentials. It does not see the keys of the
// authorities, other nodes and the control plane, so a pod that mounts the node's files cannot read them either.

// ownDirs returns the directories of the data directory that belong to the node, below which it writes. The data
// directory of a machine that has joined a cluster as a node alone, or of a container, has nothing else in it.
func (n *Config) ownDirs() []string {
	if n.Bootstraps || n.Containerized {
		return []string{n.DataDir}
	}
	l := plan.Layout(n.DataDir)
	return []string{l.Node(n.Name), filepath.Dir(l.NodeLog(n.Name, "")), filepath.Dir(l.NodeSocket(n.Name))}
}

// credentials returns the files besides those directories, which the node's processes only read.
func (n *Config) credentials() []string {
	l := plan.Layout(n.DataDir)
	return []string{l.PKI("ca.crt"), l.PKI("kubelet-server-" + n.Name + ".crt"),
		l.PKI("kubelet-server-" + n.Name + ".key"),
		l.Kubeconfig("kubelet-" + n.Name), l.Kubeconfig("proxy-" + n.Name), l.Kubeconfig("network-" + n.Name)}
}

// heldData is the node's part of the data directory, by the paths below it: directories as mounts, files with their
// content at the node's start.
type heldData struct {
	dirs  map[string]int
	files map[string][]byte
}

// holdData takes hold of the node's part of the data directory before the node's root hides it. The caller closes it.
// It makes the directories on the host if they do not exist, which is so at a node's first start.
func (n *Config) holdData() (held heldData, err error) {
	held = heldData{dirs: map[string]int{}, files: map[string][]byte{}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("hold the data directory: %w", err), held.close())
		}
	}()
	for _, dir := range n.ownDirs() {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return held, err
		}
		fd, err := hold(dir)
		if err != nil {
			return held, err
		}
		// relative to the data directory, with a leading slash
		held.dirs[strings.TrimPrefix(dir, n.DataDir)] = fd
	}
	if n.Bootstraps || n.Containerized {
		return held, nil
	}
	for _, file := range n.credentials() {
		data, err := os.ReadFile(file)
		if err != nil {
			return held, err
		}
		held.files[strings.TrimPrefix(file, n.DataDir)] = data
	}
	return held, nil
}

// close releases what is held. What was mounted stays.
func (h heldData) close() error {
	var errs []error
	for _, fd := range h.dirs {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}

// show mounts and writes everything that is held, at dir. Files are copies: if dir is in memory, no second copy of a
// key gets onto a disk.
func (h heldData) show(dir string) error {
	for place, fd := range h.dirs {
		if err := os.MkdirAll(filepath.Join(dir, place), 0o700); err != nil {
			return err
		}
		if err := unix.MoveMount(fd, "", unix.AT_FDCWD, filepath.Join(dir, place),
			unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("bind %s of the data directory: %w", place, err)
		}
	}
	for place, data := range h.files {
		if err := host.WriteFile(filepath.Join(dir, place), data); err != nil {
			return err
		}
	}
	return nil
}
