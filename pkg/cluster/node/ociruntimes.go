package node

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"bonsai/pkg/cluster/plan"
)

// foundOCIRuntimes returns the OCI runtimes that the machine has. It looks along the PATH of the node's init, in the
// node's own root.
func foundOCIRuntimes() []string {
	return slices.DeleteFunc(slices.Clone(plan.OCIRuntimes[:]), func(name string) bool {
		_, err := exec.LookPath(name)
		return err != nil
	})
}

// runtimeHandlers returns the tables of containerd's file with the OCI runtimes, for its plug-in of that name. All of
// them use the shim of runc, because they take its arguments.
func runtimeHandlers(plugin string, found []string) string {
	var b strings.Builder
	for _, name := range found {
		table := fmt.Sprintf("plugins.%q.containerd.runtimes.%s", plugin, name)
		fmt.Fprintf(&b, "[%[1]s]\n  runtime_type = \"io.containerd.runc.v2\"\n  [%[1]s.options]\n    BinaryName = %[2]q\n", table, name)
	}
	return b.String()
}
