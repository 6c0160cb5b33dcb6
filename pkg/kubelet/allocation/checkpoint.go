// Package allocation keeps on the disk what the node gives its pods, so that a restart of the kubelet in the middle of
// a resize loses nothing: one file for each pod, in a directory of their own.
package allocation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/durable"
	"bonsai/pkg/kubelet/runtime"
)

// unfinished ends the name of a file that is being written.
const unfinished = ".new"

// Checkpoint reads and writes the files. It is not safe for concurrent use.
type Checkpoint struct{ root *os.Root }

// Open makes the directory if it is not there; nothing outside of it is ever touched.
func Open(dir string) (*Checkpoint, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of allocations: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the directory of allocations: %w", err)
	}
	return &Checkpoint{root}, nil
}

// Load returns what was saved of a pod; false: nothing.
func (c *Checkpoint) Load(uid types.UID) (runtime.Allocation, bool, error) {
	var a runtime.Allocation
	data, err := c.root.ReadFile(name(uid))
	if errors.Is(err, fs.ErrNotExist) {
		return a, false, nil
	}
	if err != nil {
		return a, false, fmt.Errorf("read what pod %s has: %w", uid, err)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return runtime.Allocation{}, false, fmt.Errorf("decode what pod %s has: %w", uid, err)
	}
	return a, true, nil
}

// Save replaces what was saved of a pod. After a crash, even of the machine, there is the old file or the new one.
func (c *Checkpoint) Save(uid types.UID, a runtime.Allocation) error {
	data, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encode what pod %s has: %w", uid, err)
	}
	if err := durable.ReplaceIn(c.root, name(uid)+unfinished, name(uid), data); err != nil {
		return fmt.Errorf("keep what pod %s has: %w", uid, err)
	}
	return nil
}

// Remove forgets a pod; a pod without a saved allocation is no error.
func (c *Checkpoint) Remove(uid types.UID) error {
	if err := c.root.Remove(name(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget what pod %s has: %w", uid, err)
	}
	return nil
}

// Saved returns the pods that have a saved allocation.
func (c *Checkpoint) Saved() ([]types.UID, error) {
	entries, err := fs.ReadDir(c.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list what pods have: %w", err)
	}
	var out []types.UID
	for _, e := range entries {
		if uid, ok := strings.CutSuffix(e.Name(), suffix); ok {
			out = append(out, types.UID(uid))
		}
	}
	return out, nil
}

const suffix = ".json"

func name(uid types.UID) string { return string(uid) + suffix }
