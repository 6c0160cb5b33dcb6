package cgroup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bonsai/pkg/cluster/host"
)

// freezePatience is how long the kernel may take to freeze or to thaw all processes.
const freezePatience = 10 * time.Second

// Freezer freezes a group with everything below it.
type Freezer struct {
	// control is written to; state has the line frozen when everything is.
	control, freeze, thaw string
	state, frozen         string
}

// FreezerOf returns the freezer of the cluster with the mark: in the freezer's own hierarchy (v1), or in the only one
// (v2).
func FreezerOf(mark string) Freezer {
	if IsUnified() {
		tree := filepath.Join(Root, mark)
		if trees, err := TreesBelow(Root, mark); err == nil && len(trees) > 0 {
			tree = trees[0]
		}
		return FreezerV2(tree)
	}
	return FreezerV1(filepath.Join(Root, "freezer", mark))
}

// FreezerV1 freezes a group of the v1 hierarchy of the freezer.
func FreezerV1(group string) Freezer {
	state := filepath.Join(group, "freezer.state")
	return Freezer{control: state, freeze: "FROZEN", thaw: "THAWED", state: state, frozen: "FROZEN"}
}

// FreezerV2 freezes a group of v2.
func FreezerV2(group string) Freezer {
	return Freezer{control: filepath.Join(group, "cgroup.freeze"), freeze: "1", thaw: "0",
		state: filepath.Join(group, "cgroup.events"), frozen: "frozen 1"}
}

// IsFrozen reports whether everything in the group is frozen. A group that does not exist is not.
func (f Freezer) IsFrozen() (bool, error) {
	data, err := os.ReadFile(f.state)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return false, nil
	}
	for line := range strings.Lines(string(data)) {
		if strings.TrimSpace(line) == f.frozen {
			return true, nil
		}
	}
	return false, err
}

// Set freezes or thaws the group and returns when the kernel has done so. On v1 it writes the wish again until then:
// a process that forks meanwhile leaves the group half frozen.
func (f Freezer) Set(ctx context.Context, frozen bool) error {
	word := f.thaw
	if frozen {
		word = f.freeze
	}
	ctx, cancel := context.WithTimeout(ctx, freezePatience)
	defer cancel()
	return host.Poll(ctx, time.Millisecond, func() (bool, error) {
		if err := os.WriteFile(f.control, []byte(word), 0); err != nil {
			return false, err
		}
		is, err := f.IsFrozen()
		return is == frozen, err
	})
}
