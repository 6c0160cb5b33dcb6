package plan

import (
	"fmt"
	"slices"
	"strings"
)

// ociRuntimes are the programs that may make containers for a node's containerd. Each that the machine has is a
// runtime handler of the name,
// for RuntimeClasses.
var OCIRuntimes = [...]string{DefaultOCIRuntime, "crun"}

// defaultOCIRuntime makes the containers of pods without a RuntimeClass unless the configuration file says otherwise.
const DefaultOCIRuntime = "runc"

// CheckOCIRuntime returns what is wrong with the name of a runtime.
func CheckOCIRuntime(name string) error {
	if !slices.Contains(OCIRuntimes[:], name) {
		return fmt.Errorf("must be %s, not %q", strings.Join(OCIRuntimes[:], " or "), name)
	}
	return nil
}
