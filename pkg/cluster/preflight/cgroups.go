package preflight

import (
	"fmt"
	"slices"

	"bonsai/pkg/cluster/host/cgroup"
)

// controllers are the cgroup controllers by which the kubelet gives pods their resources, and the options of the kernel
// that have them.
var controllers = [...]struct{ name, option string }{
	{"cpu", "CONFIG_CGROUP_SCHED"}, {"cpuset", "CONFIG_CPUSETS"}, {"memory", "CONFIG_MEMCG"},
	{"pids", "CONFIG_CGROUP_PIDS"},
}

// controlGroups is about the version of cgroups and their controllers.
func controlGroups(m Machine, _ Needs) []Finding {
	const subject = "cgroups"
	g := m.Cgroups
	version := Finding{Level: OK, Subject: subject, Text: "v2"}
	if !g.Unified {
		version = Finding{Level: Note, Subject: subject,
			Text: "v1: pods have no memory.high, no OOM kill of whole containers and no figures of pressure; cgroup v2 " +
				"comes with systemd.unified_cgroup_hierarchy=1 on the kernel's command line"}
	}
	found := []Finding{version}
	if g.ReadOnly {
		found = append(found, Finding{Level: Missing, Subject: subject,
			Text: cgroup.Root + " is read-only: in a container, give it privileges and its own cgroup namespace"})
	}
	for _, c := range controllers {
		if slices.Contains(g.Here, c.name) || m.Account != nil && c.name != "cpuset" { // InspectAccount has these
			continue
		}
		if m.Account != nil {
			found = append(found, Finding{Level: Note, Subject: subject,
				Text: "the cgroup controller cpuset is not delegated: the kubelet's static CPU and memory managers have no effect"})
			continue
		}
		f := Finding{Level: Missing, Subject: subject}
		on, known := g.Known[c.name]
		switch {
		case g.Known != nil && !known:
			f.Text = fmt.Sprintf("the kernel has no cgroup controller %s, which pods' resources need: it was built without %s",
				c.name, c.option)
			f.Run = m.Distribution.install(kernelImage)
		case known && !on:
			f.Text = fmt.Sprintf("the cgroup controller %s is switched off, which pods' resources need: boot with "+
				"cgroup_enable=%[1]s on the kernel's command line", c.name)
		case g.Unified:
			f.Text = fmt.Sprintf("the cgroup controller %s is missing from %s/cgroup.controllers, which pods' resources "+
				"need: it is in a hierarchy of cgroup v1 or, in a container, was not delegated to it", c.name, cgroup.Root)
		default:
			f.Text = fmt.Sprintf("the cgroup controller %s is not mounted, which pods' resources need", c.name)
			f.Run = fmt.Sprintf("mkdir -p %s/%s && mount -t cgroup -o %[2]s cgroup %[1]s/%[2]s", cgroup.Root, c.name)
		}
		found = append(found, f)
	}
	return found
}
