package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// noteService writes the file Service for this process. A process whose end systemd was not asked to hear about is no
// unit's main process, even if it runs in the group of one, as in that of a CI's runner.
func noteService(c plan.Config, n notifier) error {
	unit := ""
	if n.socket != "" {
		unit = unitIn("/proc/self/cgroup")
	}
	return host.WriteFile(c.Layout().Service(), []byte(unit))
}

// unitIn returns the service whose group a process is in, from its cgroup file (cgroups(7)): that of v2, or of
// systemd's own hierarchy beside v1; "" if it is in none.
func unitIn(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[1] != "" && parts[1] != "name=systemd" {
			continue
		}
		if unit := filepath.Base(parts[2]); filepath.Ext(unit) == ".service" {
			return unit
		}
	}
	return ""
}

// checkNotServed refuses to start a supervisor in the background in place of one that a service manager runs: the
// manager would take its service for ended, and stop nothing when the machine goes down, or start it a second time.
// again is the command to run once the service is stopped; "": a restart of the service does what is wanted.
func checkNotServed(c plan.Config, again string) error {
	if !locked(c) {
		return nil // what is there was left by one that was killed
	}
	unit, err := os.ReadFile(c.Layout().Service())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(unit) == 0 && again == "":
		return fmt.Errorf("the cluster in %s runs under a service manager (bonsai start --foreground), and needs a restart: restart that service", c.DataDir)
	case again == "":
		return fmt.Errorf("the cluster in %s runs as the systemd unit %s, and needs a restart. Run: systemctl restart %[2]s", c.DataDir, unit)
	case len(unit) == 0:
		return fmt.Errorf("the cluster in %s runs under a service manager (bonsai start --foreground). Stop that service first, then run %s, then start "+
			"the service", c.DataDir, again)
	}
	return fmt.Errorf("the cluster in %s runs as the systemd unit %s. Run first: systemctl stop %[2]s; then: %s; then: systemctl start %[2]s",
		c.DataDir, unit, again)
}
