// Package programs says whose programs a cluster executes beside ours, such as containerd, runc, nft and ip: those that
// came with Bonsai, or the machine's own.
package programs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// The values of plan.Config.Programs, where "" stands for Bundled.
const (
	// Bundled are those in Dir. What is not there, as in a developer's checkout, is the machine's.
	Bundled = "bundled"
	// Machine are the machine's alone.
	Machine = "machine"
)

// Check returns what is wrong with a user's choice.
func Check(choice string) error {
	if choice != Bundled && choice != Machine {
		return fmt.Errorf("must be %s or %s, not %q", Bundled, Machine, choice)
	}
	return nil
}

// Dir returns the directory of the bundled programs, which is beside ours. Below it, cni has the plug-ins.
func Dir(binDir string) string { return filepath.Join(binDir, "runtime") }

// SearchPath returns the PATH of our processes: an inherited one with the bundled programs before the machine's, or
// without them. The system's directories come last, because root's PATH lacks them after su, or in a job of cron.
//
// Each generation of processes builds it from the one that it inherits. So it drops repetitions, and also relative
// directories: root runs nothing from wherever it happens to be.
func SearchPath(inherited, binDir, choice string) string {
	bundled := Dir(binDir)
	var dirs []string
	if choice != Machine {
		dirs = append(dirs, bundled)
	}
	for _, dir := range append(filepath.SplitList(inherited), "/usr/sbin", "/sbin") {
		if filepath.IsAbs(dir) && dir != bundled && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}
