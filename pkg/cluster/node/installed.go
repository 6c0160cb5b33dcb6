package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// CheckInstalled has an error for each of the node's programs and plug-ins that this machine lacks. The check of a
// start calls it on the host, whose programs a node sees at the same places. bridge stands for all plug-ins of the
// package.
func CheckInstalled(binDir string) []error {
	var errs []error
	programs := Config{BinDir: binDir}
	for _, program := range []string{programs.Containerd(), programs.CTR()} {
		if _, err := exec.LookPath(program); err != nil {
			errs = append(errs, fmt.Errorf("the program %s is missing (make install)", program))
		}
	}
	if _, err := os.Stat(filepath.Join(SystemPlugins, "bridge")); err != nil {
		errs = append(errs, fmt.Errorf("the CNI plug-ins are missing from %s (make install)", SystemPlugins))
	}
	return errs
}
