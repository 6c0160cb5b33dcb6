package preflight

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"bonsai/pkg/cluster/host/kernel"
)

// The oldest kernel that Kubernetes itself accepts for Services in nftables.
const oldestMajor, oldestMinor = 5, 13

// kernelRelease is about the kernel's age. It only warns: distributions bring features into old kernels, and all that a
// cluster cannot do without is tried.
func kernelRelease(m Machine, _ Needs) []Finding {
	f := Finding{Level: OK, Subject: "kernel", Text: m.Kernel.Release}
	major, minor := versionOf(m.Kernel.Release)
	if major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		f.Level, f.Run = Warning, m.Distribution.install(kernelImage)
		f.Text = fmt.Sprintf("the kernel %s is older than %d.%d, the oldest one for Services in nftables",
			m.Kernel.Release, oldestMajor, oldestMinor)
	}
	return []Finding{f}
}

// versionOf returns the first two numbers of a kernel's release.
func versionOf(release string) (major, minor int) {
	parts := strings.SplitN(release, ".", 3)
	major, _ = strconv.Atoi(parts[0]) // not a number: 0, which is old
	if len(parts) > 1 {
		digits := strings.IndexFunc(parts[1], func(r rune) bool { return r < '0' || r > '9' })
		if digits < 0 {
			digits = len(parts[1])
		}
		minor, _ = strconv.Atoi(parts[1][:digits])
	}
	return major, minor
}

// kernelFeatures has one finding for all features that work, and one for each that was tried in vain.
func kernelFeatures(m Machine, _ Needs) []Finding {
	var found []Finding
	for _, lack := range m.Kernel.Lacks {
		found = append(found, lackOf(m, lack))
	}
	if len(found) == 0 {
		found = append(found, Finding{Level: OK, Subject: "kernel modules",
			Text: "links, packet rules and overlays work"})
	}
	return found
}

// lackOf says why a feature does not work, and what would give it. That differs: the module is not loaded, or not
// installed, or no longer after the kernel's update, or the kernel was built without it.
func lackOf(m Machine, lack kernel.Lack) Finding {
	k := m.Kernel
	value, known := k.Options[lack.Option]
	absent := k.Options != nil && (!known || value == "n")
	f := Finding{Level: Missing, Subject: "kernel modules"}
	f.Text = fmt.Sprintf("kernel module %s is not loaded, which %s need: ", lack.Module, lack.Need)
	if lack.Loaded {
		f.Text = fmt.Sprintf("the kernel module %s is loaded, but %s do not work: ", lack.Module, lack.Need)
	}
	switch {
	case absent:
		f.Text += fmt.Sprintf("this kernel has %s neither built in nor as a module. Boot one that has it", lack.Option)
		f.Run = m.Distribution.install(kernelImage)
	case lack.Loaded:
		f.Text += fmt.Sprintf("%v. The kernel's option is %s", lack.Err, lack.Option)
	case k.Modules[lack.Module]:
		f.Text, f.Run = f.Text+lack.Err.Error(), "modprobe "+lack.Module
	case k.Modules == nil && value == "m":
		f.Text += fmt.Sprintf("there is no /lib/modules/%s. If the kernel was updated, boot the new one", k.Release)
		f.Run = "reboot"
	case value == "m":
		f.Text += lack.Option + " is a module of this kernel, but not installed"
		f.Run = m.Distribution.installModules(k.Release)
	case value == "y":
		f.Text += fmt.Sprintf("this kernel has %s built in, but: %v", lack.Option, lack.Err)
	case k.Modules != nil && !k.BuiltIn[lack.Module]:
		f.Text += fmt.Sprintf("this kernel was built without %s, or its module is not installed", lack.Option)
		f.Run = cmp.Or(m.Distribution.installModules(k.Release), m.Distribution.install(kernelImage))
	default:
		f.Text += fmt.Sprintf("%v. The kernel's option is %s", lack.Err, lack.Option)
		f.Run = "modprobe " + lack.Module
	}
	return f
}

// mark is a feature of the kernel that cannot be tried cheaply, and the file by which it shows.
type mark struct {
	option string
	path   string // or a word of /proc/filesystems, after a colon
	level  Level  // of its lack
	need   string
}

// marks are the features that containers need.
var marks = [...]mark{
	{"CONFIG_NET_NS", "/proc/self/ns/net", Missing, "nodes need network namespaces"},
	{"CONFIG_PID_NS", "/proc/self/ns/pid", Missing, "nodes need PID namespaces"},
	{"CONFIG_IPC_NS", "/proc/self/ns/ipc", Missing, "containers need IPC namespaces"},
	{"CONFIG_UTS_NS", "/proc/self/ns/uts", Missing, "nodes need their own host names"},
	{"CONFIG_CGROUPS", "/proc/self/ns/cgroup", Missing, "containers need control groups"},
	{"CONFIG_POSIX_MQUEUE", ":mqueue", Missing, "every container mounts the file system mqueue"},
	{"CONFIG_TMPFS", ":tmpfs", Missing, "volumes in memory need tmpfs"},
	{"CONFIG_UNIX98_PTYS", ":devpts", Missing, "every container mounts the file system devpts"},
	{"CONFIG_SECCOMP_FILTER", "/proc/sys/kernel/seccomp/actions_avail", Warning,
		"pods with a seccomp profile, such as RuntimeDefault, do not start"},
	{"CONFIG_KEYS", "/proc/sys/kernel/keys/maxkeys", Note, "containers have no keyring of their own"},
	{"CONFIG_USER_NS", "/proc/self/ns/user", Note, "pods with hostUsers: false do not start"},
	{"CONFIG_PSI", "/proc/pressure/memory", Note,
		"there are no figures of pressure; some kernels need psi=1 on their command line"},
}

// kernelMarks has one finding for all features that are there, and one for each that is not.
func kernelMarks(m Machine, _ Needs) []Finding {
	var found []Finding
	for _, mark := range marks {
		if m.Kernel.Has[mark.option] {
			continue
		}
		f := Finding{Level: mark.level, Subject: "kernel options",
			Text: fmt.Sprintf("the kernel has no %s: %s", mark.option, mark.need)}
		if mark.level == Missing {
			f.Run = m.Distribution.install(kernelImage)
		}
		found = append(found, f)
	}
	if len(found) == 0 {
		found = append(found, Finding{Level: OK, Subject: "kernel options",
			Text: "namespaces, file systems and seccomp are there"})
	}
	return found
}
