package preflight

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host/cgroup"
)

// Account describes a user who runs clusters without being root.
type Account struct {
	Name string
	UID  int
	// SubUIDs and SubGIDs are how many subordinate IDs the user has. Least is how many it takes.
	SubUIDs, SubGIDs, Least uint64
	// Programs are those that the namespaces need. They also need one of Networks.
	Programs, Networks []Program
	// Namespaces is why the user can make no namespaces.
	Namespaces error
	// Systemd is why the user's own systemd is not there.
	Systemd error
	Unified bool
	// Delegated are the cgroup controllers that the user's systemd has.
	Delegated []string
	// Lingers: the user's processes go on when he logs out.
	Lingers bool
}

// ReadAccount completes a description. The caller gives the user, the IDs, and the names of programs. runtime is the
// user's $XDG_RUNTIME_DIR.
func ReadAccount(ctx context.Context, a Account, runtime string) Account {
	for _, programs := range [][]Program{a.Programs, a.Networks} {
		for i := range programs {
			_, err := exec.LookPath(programs[i].Name)
			programs[i].Found = err == nil
		}
	}
	a.Namespaces = tryNamespaces(ctx)
	_, a.Systemd = os.Stat(filepath.Join(runtime, "systemd", "private")) // the socket goes with the user's systemd
	a.Unified = cgroup.IsUnified()
	own := fmt.Sprintf("%s/user.slice/user-%d.slice/user@%[2]d.service/cgroup.controllers", cgroup.Root, a.UID)
	// In the user's namespaces the root is what his systemd has delegated.
	a.Delegated = strings.Fields(firstOf(own, cgroup.Root+"/cgroup.controllers"))
	_, err := os.Stat(filepath.Join("/var/lib/systemd/linger", a.Name))
	a.Lingers = err == nil
	return a
}

// tryNamespaces makes the namespaces that clusters of a user have, with his own ID alone. Some machines let a user make
// a user namespace, and then refuse all that he would do in it.
func tryNamespaces(ctx context.Context) error {
	program, err := exec.LookPath("true")
	if err != nil {
		return nil // nothing to try with
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, Unshareflags: unix.CLONE_NEWNS |
		unix.CLONE_NEWNET, UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}}
	return cmd.Run()
}

// InspectAccount returns what the rules have to say about a user who wants to run clusters without being root. sysctls
// are the machine's (Machine.Sysctls), and d is its distribution.
func InspectAccount(a Account, sysctls map[string]string, d Distribution) []Finding {
	const subject = "rootless"
	var found []Finding
	missing := func(run, format string, args ...any) {
		found = append(found, Finding{Missing, subject, fmt.Sprintf(format, args...), run})
	}
	var programs []string
	for _, p := range a.Programs {
		if !p.Found {
			programs = append(programs, p.Name)
		}
	}
	if len(programs) > 0 {
		missing(d.install(programs...), "the user namespace needs %s", strings.Join(programs, ", "))
	}
	if !slices.ContainsFunc(a.Networks, func(p Program) bool { return p.Found }) && len(a.Networks) > 0 {
		var names []string
		for _, p := range a.Networks {
			names = append(names, p.Name)
		}
		missing(d.install(names...),
			"pasta or slirp4netns is needed, which forwards the packets of the namespaces")
	}
	for _, ids := range []struct {
		count      uint64
		file, flag string
	}{{a.SubUIDs, "/etc/subuid", "--add-subuids"}, {a.SubGIDs, "/etc/subgid", "--add-subgids"}} {
		if ids.count < a.Least {
			missing(fmt.Sprintf("usermod %s 100000-165535 %s", ids.flag, a.Name),
				"%s gives %s %d IDs, and images need %d (choose a range that nobody else has there)", ids.file, a.Name, ids.count,
				a.Least)
		}
	}
	found = append(found, namespaces(a, sysctls)...)
	if !a.Unified {
		missing("", "the machine has cgroup v1, which nobody but root can divide: boot with "+
			"systemd.unified_cgroup_hierarchy=1 on the kernel's command line")
	}
	if a.Systemd != nil {
		missing("loginctl enable-linger "+a.Name, "%s has no systemd of his own (%v), which delegates cgroups. Log in "+
			"by ssh, at a console or with machinectl shell, not with su", a.Name, a.Systemd)
	} else if a.Unified {
		found = append(found, delegation(a)...)
	}
	if a.Systemd == nil && !a.Lingers {
		found = append(found, Finding{Warning, subject,
			fmt.Sprintf("clusters end when %s logs out for the last time", a.Name), "loginctl enable-linger " + a.Name})
	}
	if len(found) == 0 {
		found = append(found, Finding{Level: OK, Subject: subject, Text: fmt.Sprintf(
			"clusters run in namespaces of %s: no loop devices, no AppArmor, no other machines", a.Name)})
	}
	return asRoot(found)
}

// namespaces is about what keeps a user from making namespaces.
func namespaces(a Account, sysctls map[string]string) []Finding {
	if a.Namespaces == nil {
		return nil
	}
	f := Finding{Level: Missing, Subject: "rootless", Text: fmt.Sprintf("%s may make no user namespaces: %v", a.Name,
		a.Namespaces)}
	for _, s := range []struct{ name, forbids, allows string }{
		{"kernel.unprivileged_userns_clone", "0", "1"},
		{"kernel.apparmor_restrict_unprivileged_userns", "1", "0"},
		{"user.max_user_namespaces", "0", "28633"},
	} {
		if sysctls[s.name] == s.forbids {
			f.Text = fmt.Sprintf("%s may make no user namespaces, as %s is %s", a.Name, s.name, s.forbids)
			f.Run = fmt.Sprintf("sysctl -w %s=%s", s.name, s.allows)
			break
		}
	}
	return []Finding{f}
}

// delegation is about the controllers that the user's systemd has.
func delegation(a Account) []Finding {
	var lacks []string
	for _, name := range []string{"cpu", "memory", "pids"} {
		if !slices.Contains(a.Delegated, name) {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	const file = "/etc/systemd/system/user@.service.d/delegate.conf"
	return []Finding{{Missing, "rootless", fmt.Sprintf("the cgroup controllers %s are not delegated to %s: write [Service] and "+
		"Delegate=cpu cpuset io memory pids into %s, and log in again", strings.Join(lacks, ", "), a.Name, file),
		"mkdir -p " + filepath.Dir(file) + " && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' | tee " + file +
			" && systemctl daemon-reload"}}
}

// asRoot puts sudo before the commands of findings, which are for root.
func asRoot(found []Finding) []Finding {
	out := slices.Clone(found)
	for i, f := range out {
		if f.Run != "" {
			out[i].Run = "sudo " + strings.NewReplacer(" && ", " && sudo ", "| tee", "| sudo tee").Replace(f.Run)
			out[i].Run = strings.ReplaceAll(out[i].Run, "sudo printf", "printf")
		}
	}
	return out
}

// AccountErrors returns the error of a user who cannot run clusters, with everything that is missing.
func AccountErrors(found []Finding) error {
	if err := Errors(found); err != nil {
		return errors.Join(errors.New("without root (sudo bonsai ...), clusters run in namespaces of yours, for which this machine lacks:"), err)
	}
	return nil
}
