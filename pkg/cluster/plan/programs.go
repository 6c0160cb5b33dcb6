package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// The programs of others that a cluster executes, such as containerd, runc, nft and ip, are those that came with Bonsai
// or the machine's own.
const (
	// BundledPrograms are those in RuntimeDir. What is not there, as in a developer's checkout, is the machine's.
	BundledPrograms = "bundled"
	// MachinePrograms are the machine's alone.
	MachinePrograms = "machine"
)

// CheckPrograms returns what is wrong with a value of Config.Programs.
func CheckPrograms(value string) error {
	if value != BundledPrograms && value != MachinePrograms {
		return fmt.Errorf("must be %s or %s, not %q", BundledPrograms, MachinePrograms, value)
	}
	return nil
}

// RuntimeDir returns the directory of the bundled programs, which is beside ours. Below it, cni has the plug-ins.
func RuntimeDir(binDir string) string { return filepath.Join(binDir, "runtime") }

// SearchPath returns the PATH of our processes: an inherited one with the bundled programs before the machine's, or
// without them. The system's directories come last, because root's PATH lacks them after su, or in a job of cron.
//
// Each generation of processes builds it from the one that it inherits. So it drops repetitions, and also relative
// directories: root runs nothing from wherever it happens to be.
func SearchPath(inherited, binDir, programs string) string {
	bundled := RuntimeDir(binDir)
	var dirs []string
	if programs != MachinePrograms {
		dirs = append(dirs, bundled)
	}
	for _, dir := range append(filepath.SplitList(inherited), "/usr/sbin", "/sbin") {
		if filepath.IsAbs(dir) && dir != bundled && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}
