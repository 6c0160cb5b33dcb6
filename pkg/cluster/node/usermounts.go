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

// ofTheHost returns the directories in which a node sees the host's files or the kernel's. Nothing can be created there
// for a node.
func ofTheHost() []string { return append(systemDirs[:], "/dev", "/proc", "/sys") }

// MissingMounts has an error for each mount of the nodes that is impossible on this machine.
//
// It runs on the host, before a start or a new node. Below the host's directories it looks for a mount's place in the
// node on the host itself, because the node sees the same files there.
func MissingMounts(c plan.Config) []error {
	var errs []error
	for _, node := range c.Nodes {
		for _, m := range node.Mounts {
			if _, err := os.Stat(m.HostPath); err != nil {
				errs = append(errs, fmt.Errorf("mount of node %s: %w", node.Name(), err))
			}
			if _, err := os.Stat(m.NodePath); err != nil && host.IsBelow(m.NodePath, ofTheHost()) {
				errs = append(errs, fmt.Errorf("mount of node %s: %w (below %s no place is made for it)", node.Name(),
					err, strings.Join(ofTheHost(), ", ")))
			}
		}
	}
	return errs
}

// heldMount is a mount whose source is held open while the node's file system is laid out.
type heldMount struct {
	plan.Mount
	fd  int
	dir bool
}

// heldMounts are in the order of the configuration: a later mount may be below an earlier one.
type heldMounts []heldMount

// holdMounts takes hold of the sources of the user's mounts before anything hides them. The caller closes them.
func (n *Config) holdMounts() (held heldMounts, err error) {
	for _, m := range n.Mounts {
		info, err := os.Stat(m.HostPath)
		if err != nil {
			return held, errors.Join(err, held.close())
		}
		fd, err := hold(m.HostPath)
		if err != nil {
			return held, errors.Join(fmt.Errorf("hold %s: %w", m.HostPath, err), held.close())
		}
		held = append(held, heldMount{m, fd, info.IsDir()})
	}
	return held, nil
}

// close releases the sources. What was mounted stays.
func (h heldMounts) close() error {
	var errs []error
	for _, m := range h {
		errs = append(errs, unix.Close(m.fd))
	}
	return errors.Join(errs...)
}

// show mounts the sources at their places in the node.
func (h heldMounts) show() error {
	for _, m := range h {
		if err := m.makePlace(); err != nil {
			return fmt.Errorf("make %s: %w", m.NodePath, err)
		}
		if err := unix.MoveMount(m.fd, "", unix.AT_FDCWD, m.NodePath, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("mount %s at %s: %w", m.HostPath, m.NodePath, err)
		}
		// The flag is set by a change of the mount: MoveMount attaches a clone as it is. Mounts below this one stay
		// writable.
		if !m.ReadOnly {
			continue
		}
		if err := makeReadOnly(m.NodePath); err != nil {
			return err
		}
	}
	return nil
}

// makePlace makes the file or directory to mount on, unless it exists. Below the host's directories it makes nothing.
func (m heldMount) makePlace() error {
	if _, err := os.Stat(m.NodePath); !os.IsNotExist(err) {
		return err
	}
	if host.IsBelow(m.NodePath, ofTheHost()) {
		return fmt.Errorf("no such place, and %s is the host's", filepath.Dir(m.NodePath))
	}
	if m.dir {
		return os.MkdirAll(m.NodePath, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(m.NodePath), 0o755); err != nil {
		return err
	}
	return os.WriteFile(m.NodePath, nil, 0o644)
}
