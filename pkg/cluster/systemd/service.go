package systemd

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

// Note writes the file at path (plan.Layout.Service), which says that a service manager runs this process: it holds the
// name of the systemd unit, or nothing for another manager. A process that has no notification socket is no unit's main
// process, even if it runs in the group of one, as below the unit of a CI's runner.
func Note(path string, n Notifier) error {
	unit := ""
	if n.IsService() {
		unit = unitIn("/proc/self/cgroup")
	}
	return host.WriteFile(path, []byte(unit))
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

// CheckNotServed returns an error if a service manager runs the supervisor of the cluster in the data directory: no
// supervisor in the background may take its place. The manager would take its service for ended, and stop nothing when
// the machine shuts down, or start the cluster a second time. The caller knows that a supervisor runs: the file that
// Note writes also remains after one that was killed. again is the command to run once the service is stopped; "" if a
// restart of the service does what the user wants.
func CheckNotServed(l plan.Layout, again string) error {
	unit, err := os.ReadFile(l.Service())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(unit) == 0 && again == "":
		return fmt.Errorf("the cluster in %s runs under a service manager (bonsai start --foreground), and needs a restart: restart that service", l)
	case again == "":
		return fmt.Errorf("the cluster in %s runs as the systemd unit %s, and needs a restart. Run: systemctl restart %[2]s", l, unit)
	case len(unit) == 0:
		return fmt.Errorf("the cluster in %s runs under a service manager (bonsai start --foreground). Stop that service first, then run %s, then start "+
			"the service", l, again)
	}
	return fmt.Errorf("the cluster in %s runs as the systemd unit %s. Run first: systemctl stop %[2]s; then: %s; then: systemctl start %[2]s",
		l, unit, again)
}
