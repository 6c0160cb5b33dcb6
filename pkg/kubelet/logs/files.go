package logs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Files is where the logs of the node's containers are. A pod's have a directory of their own beneath Pods, and Links
// has a link to each single one, which collectors of logs read; empty: no links are made.
//
// The layout is a contract with collectors of logs, which parse these names:
// https://kubernetes.io/docs/concepts/cluster-administration/logging/.
type Files struct{ Pods, Links string }

// PodDir is the directory of a pod's logs: <namespace>_<name>_<uid>.
func (f Files) PodDir(namespace, name string, uid types.UID) string {
	return filepath.Join(f.Pods, namespace+"_"+name+"_"+string(uid))
}

// Path is the log file of a container that the runtime has: <container>/<restart count>.log in the pod's directory.
func (f Files) Path(p *runtime.PodStatus, c *runtime.Container) string { return f.path(Of(p, c)) }

// Container is one start of a container.
type Container struct {
	// Namespace, Pod and UID are the pod's.
	Namespace, Pod string
	UID            types.UID
	Name           string
	// ID is the runtime's own id, Attempt the restart count.
	ID      string
	Attempt int
}

func (f Files) path(c Container) string {
	return filepath.Join(f.PodDir(c.Namespace, c.Pod, c.UID), c.Name, strconv.Itoa(c.Attempt)+".log")
}

// longestLink is how long a link's name may be before its suffix: file systems know no name beyond 255 bytes.
const (
	linkSuffix  = ".log"
	longestLink = 255 - len(linkSuffix)
)

// link is where the link to a container's log is. A long name is cut off, as upstream does, so several containers may
// have the same one.
func (f Files) link(c Container) string {
	name := c.Pod + "_" + c.Namespace + "_" + c.Name + "-" + c.ID
	return filepath.Join(f.Links, name[:min(len(name), longestLink)]+linkSuffix)
}

// Link makes the link to a container's log, in place of one that an earlier container had.
//
// The link is replaced by rename, so that a collector never finds none.
func (f Files) Link(c Container) error {
	if f.Links == "" || f.linked(c) {
		return nil
	}
	next := filepath.Join(f.Links, "."+c.ID)
	if err := os.Symlink(f.path(c), next); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("link to a container's log: %w", err)
	}
	if err := os.Rename(next, f.link(c)); err != nil {
		return fmt.Errorf("link to a container's log: %w", err)
	}
	return nil
}

// linked reports whether the link leads to the container's log.
func (f Files) linked(c Container) bool {
	to, err := os.Readlink(f.link(c))
	return err == nil && to == f.path(c)
}

// Remove removes a container's log, what was rotated of it and the link to it. What is gone is fine.
func (f Files) Remove(c Container) error {
	path := f.path(c)
	old, err := rotatedFiles(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	files := append(old, path)
	if f.Links != "" && f.linked(c) {
		files = append(files, f.link(c))
	}
	for _, p := range files {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove a log: %w", err))
		}
	}
	return errors.Join(errs...)
}

// RemovePod removes a gone pod's logs and the links to them.
func (f Files) RemovePod(namespace, name string, uid types.UID) error {
	if err := os.RemoveAll(f.PodDir(namespace, name, uid)); err != nil {
		return fmt.Errorf("remove the pod's logs: %w", err)
	}
	return f.removeDeadLinks()
}

// Clean removes the logs of pods that are gone. whenGone is asked for each directory at the moment of its removal: it
// does remove if the pod is gone, and keeps it from coming back until that is done. What does not look like a pod's
// directory is left alone.
func (f Files) Clean(whenGone func(uid types.UID, remove func() error) error) error {
	dirs, err := os.ReadDir(f.Pods)
	if err != nil {
		return fmt.Errorf("read the directory of pod logs: %w", err)
	}
	var errs []error
	for _, d := range dirs {
		parts := strings.SplitN(d.Name(), "_", 3)
		if len(parts) != 3 {
			continue
		}
		errs = append(errs, whenGone(types.UID(parts[2]), func() error {
			return os.RemoveAll(filepath.Join(f.Pods, d.Name()))
		}))
	}
	return errors.Join(append(errs, f.removeDeadLinks())...)
}

// removeDeadLinks removes links into log directories that are gone. A log itself is missing for a moment while it is
// rotated, and its link must outlive that.
func (f Files) removeDeadLinks() error {
	if f.Links == "" {
		return nil
	}
	links, err := os.ReadDir(f.Links)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // somebody has cleaned up more than logs: that must keep no pod from its end
	}
	if err != nil {
		return fmt.Errorf("read the directory of container logs: %w", err)
	}
	for _, l := range links {
		path := filepath.Join(f.Links, l.Name())
		if l.Type()&fs.ModeSymlink == 0 {
			continue
		}
		log, err := os.Readlink(path)
		if err != nil {
			continue // removed meanwhile
		}
		if _, err := os.Stat(filepath.Dir(log)); errors.Is(err, fs.ErrNotExist) {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// Of names a container that the runtime has.
func Of(p *runtime.PodStatus, c *runtime.Container) Container {
	return Container{Namespace: p.Namespace, Pod: p.Name, UID: p.UID, Name: c.Name, ID: c.ID.ID, Attempt: c.Attempt}
}
