package logs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// PodDir is the directory of a pod's logs: <root>/<namespace>_<name>_<uid>.
func PodDir(root, namespace, name string, uid types.UID) string {
	return filepath.Join(root, namespace+"_"+name+"_"+string(uid))
}

// Path is the log file of a container's n-th start in the pod's directory: <container>/<n>.log.
func Path(podDir, container string, n int) string {
	return filepath.Join(podDir, container, strconv.Itoa(n)+".log")
}

// Remove removes a container's log file and what was rotated of it. One that is gone is fine.
func Remove(path string) error {
	old, err := rotatedFiles(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range append(old, path) {
		if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove a log: %w", err)
		}
	}
	return nil
}

// KeepLast removes the logs of all but the last n starts of a container; dir is the container's directory.
func KeepLast(dir string, n int) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the logs: %w", err)
	}
	var starts []int
	for _, e := range entries {
		if s, ok := strings.CutSuffix(e.Name(), ".log"); ok {
			if i, err := strconv.Atoi(s); err == nil {
				starts = append(starts, i)
			}
		}
	}
	slices.Sort(starts)
	for _, i := range starts[:max(len(starts)-n, 0)] {
		if err := Remove(filepath.Join(dir, strconv.Itoa(i)+".log")); err != nil {
			return err
		}
	}
	return nil
}

// Prune removes the log directories of pods that are not live and returns their names. What does not look like a
// pod's directory is left alone.
func Prune(root string, live map[types.UID]bool) ([]string, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the pods' logs: %w", err)
	}
	var removed []string
	var errs []error
	for _, e := range entries {
		parts := strings.Split(e.Name(), "_")
		if !e.IsDir() || len(parts) != 3 || live[types.UID(parts[2])] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(root, e.Name())); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, e.Name())
	}
	return removed, errors.Join(errs...)
}
