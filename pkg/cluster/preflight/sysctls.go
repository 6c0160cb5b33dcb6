package preflight

import (
	"fmt"
	"strconv"
)

// limit is a setting of the kernel that bounds what a cluster can have.
type limit struct {
	name string
	// base and node are how much of it a cluster uses, and one of its nodes with some forty pods.
	base, node uint64
	what       string // that runs out
}

// limits are the settings that may be too low. Namespaces: each pod has one of each kind, and so has each container.
var limits = [...]limit{
	{"user.max_net_namespaces", 8, 48, "network namespaces"},
	{"user.max_mnt_namespaces", 16, 128, "mount namespaces"},
	{"user.max_pid_namespaces", 8, 96, "PID namespaces"},
	{"user.max_ipc_namespaces", 8, 48, "IPC namespaces"},
	{"user.max_uts_namespaces", 8, 48, "UTS namespaces"},
	{"user.max_cgroup_namespaces", 8, 96, "cgroup namespaces"},
	{"kernel.keys.root_maxkeys", 64, 128, "keyrings of containers"},
	{"kernel.pid_max", 4096, 4096, "process IDs"},
	{"kernel.threads-max", 4096, 4096, "threads"},
	{"fs.file-max", 65536, 16384, "open files"},
	{"net.netfilter.nf_conntrack_max", 16384, 8192, "tracked connections"},
}

// raised are the settings that `bonsai up` raises.
var raised = [...]limit{
	{"fs.inotify.max_user_instances", 128, 128, "inotify instances"},
	{"fs.inotify.max_user_watches", 8192, 8192, "inotify watches"},
}

// ofUsers are the settings that bound what a user has who is not root, in his namespaces too.
var ofUsers = [...]limit{
	{"kernel.keys.maxkeys", 64, 128, "keyrings of containers"},
}

// sysctls is about settings of the kernel: those that are too low, and those that a cluster changes.
func sysctls(m Machine, n Needs) []Finding {
	const subject = "sysctls"
	var found []Finding
	few := func(l limit) {
		need := l.base + l.node*uint64(n.Nodes)
		has, err := strconv.ParseUint(m.Sysctls[l.name], 10, 64)
		if err == nil && has < need { // a kernel without the setting has no such bound
			found = append(found, Finding{Warning, subject, fmt.Sprintf(
				"%s is %d: a cluster with %d nodes may need %d, and then there are no more %s", l.name, has, n.Nodes, need,
				l.what), fmt.Sprintf("sysctl -w %s=%d", l.name, need)})
		}
	}
	for _, l := range limits {
		few(l)
	}
	if m.Account != nil {
		for _, l := range ofUsers {
			few(l)
		}
	}
	if m.SysctlsReadOnly || m.Account != nil {
		for _, l := range raised {
			few(l)
		}
	}
	if m.SysctlsReadOnly {
		if n.Egress && m.Sysctls["net.ipv4.ip_forward"] == "0" {
			found = append(found, Finding{Missing, subject,
				"net.ipv4.ip_forward is 0 and /proc/sys is read-only: nodes reach nothing beyond this machine (or start with " +
					"--egress=false)", "sysctl -w net.ipv4.ip_forward=1"})
		}
	}
	if m.Sysctls["user.max_user_namespaces"] == "0" {
		found = append(found, Finding{Note, subject, "user.max_user_namespaces is 0: pods with hostUsers: false do not start",
			"sysctl -w user.max_user_namespaces=10000"})
	}
	if m.Sysctls["vm.overcommit_memory"] == "2" {
		found = append(found, Finding{Warning, subject,
			"vm.overcommit_memory is 2: programs that reserve more memory than they use, such as Go's and Java's, may not " +
				"start", "sysctl -w vm.overcommit_memory=0"})
	}
	if len(found) == 0 {
		found = append(found, Finding{Level: OK, Subject: subject, Text: "limits are high enough"})
	}
	return found
}
