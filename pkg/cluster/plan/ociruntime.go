package plan

import (
	"fmt"
	"slices"
	"strings"
)

// OCIRuntimes are the programs that may make containers for a node's containerd. Each one that the machine has becomes
// a runtime handler of its name, for RuntimeClasses.
var OCIRuntimes = [...]string{DefaultOCIRuntime, "crun"}

// DefaultOCIRuntime makes the containers of pods without a RuntimeClass unless the configuration names another.
const DefaultOCIRuntime = "runc"

// CheckOCIRuntime returns what is wrong with the name of a runtime.
func CheckOCIRuntime(name string) error {
	if !slices.Contains(OCIRuntimes[:], name) {
		return fmt.Errorf("must be %s, not %q", strings.Join(OCIRuntimes[:], " or "), name)
	}
	return nil
}
