package preflight

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/host/kernel"
)

// Wanted is what Read looks for on the machine.
type Wanted struct {
	Needs
	Programs []Program      // Found is filled in
	Features []kernel.Group // to try
	DataDir  string         // it need not exist
	Account  *Account       // the user in whose namespaces this process runs
	// Written are files of Bonsai and the cluster. The clock cannot be before the time of any of them.
	Written []string
}

// Read describes this machine. It loads the kernel modules that a cluster uses, and changes nothing else. What cannot
// be read counts as not there: a rule then speaks of it.
func Read(ctx context.Context, w Wanted) (Machine, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Machine{}, err
	}
	release := unix.ByteSliceToString(name.Release[:])
	lacks := kernel.Check(ctx, w.Features, kernel.LoadModule)
	data, err := readData(ctx, host.Existing(w.DataDir))
	if err != nil {
		return Machine{}, err
	}
	m := Machine{
		Distribution: ReadDistribution(),
		Kernel: Kernel{Release: release, Options: options(release),
			BuiltIn: modules("/lib/modules/" + release + "/modules.builtin"),
			Modules: modules("/lib/modules/" + release + "/modules.dep"),
			Lacks:   lacks, Has: hasMarks()},
		Cgroups:  readCgroups(),
		Sysctls:  ReadSysctls(),
		Data:     data,
		Firewall: readFirewall(ctx, w.Link),
		AppArmor: strings.TrimSpace(firstOf("/sys/module/apparmor/parameters/enabled")) == "Y",
		Now:      time.Now(),
		Account:  w.Account,
	}
	for _, p := range w.Programs {
		_, err := exec.LookPath(cmp.Or(p.Path, p.Name))
		p.Found = err == nil
		m.Programs = append(m.Programs, p)
	}
	setting := "/proc/sys/net/ipv4/ip_forward"
	if f, err := os.OpenFile(setting, os.O_WRONLY, 0); err != nil {
		m.SysctlsReadOnly = true
	} else if err := f.Close(); err != nil {
		return m, err
	}
	m.Memory, m.Swap = memoryOf(firstOf("/proc/meminfo"))
	switch strings.TrimSpace(firstOf("/sys/fs/selinux/enforce")) {
	case "1":
		m.SELinux = "enforcing"
	case "0":
		m.SELinux = "permissive"
	}
	for _, file := range w.Written {
		if info, err := os.Stat(file); err == nil && info.ModTime().After(m.Known) {
			m.Known = info.ModTime()
		}
	}
	return m, nil
}

// ReadDistribution returns the machine's distribution.
func ReadDistribution() Distribution {
	return ParseDistribution(firstOf("/etc/os-release", "/usr/lib/os-release"))
}

// firstOf returns the content of the first of the files that can be read.
func firstOf(files ...string) string {
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			return string(data)
		}
	}
	return ""
}

// options returns the kernel's configuration from the first of the places that have it.
func options(release string) map[string]string {
	if data, err := os.ReadFile("/proc/config.gz"); err == nil {
		if unpacked, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
			if text, err := io.ReadAll(unpacked); err == nil {
				return parseOptions(string(text))
			}
		}
	}
	text := firstOf("/boot/config-"+release, "/lib/modules/"+release+"/config",
		"/usr/lib/ostree-boot/config-"+release)
	if text == "" {
		return nil
	}
	return parseOptions(text)
}

// parseOptions reads lines such as CONFIG_VETH=m.
func parseOptions(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasPrefix(name, "CONFIG_") {
			out[name] = value
		}
	}
	return out
}

// modules returns the names of the modules in a file such as modules.dep, or nil without the file. The kernel takes a
// dash in a name for an underscore.
func modules(file string) map[string]bool {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	out := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		path, _, _ := strings.Cut(lines.Text(), ":")
		name, _, _ := strings.Cut(filepath.Base(path), ".ko")
		out[strings.ReplaceAll(name, "-", "_")] = true
	}
	return out
}

// hasMarks returns the options of the marks that are there.
func hasMarks() map[string]bool {
	systems := strings.Fields(firstOf("/proc/filesystems"))
	has := map[string]bool{}
	for _, m := range marks {
		if name, ok := strings.CutPrefix(m.path, ":"); ok {
			has[m.option] = slices.Contains(systems, name)
		} else {
			_, err := os.Stat(m.path)
			has[m.option] = err == nil
		}
	}
	return has
}

func readCgroups() Cgroups {
	g := Cgroups{Unified: cgroup.IsUnified(), Known: parseControllers(firstOf("/proc/cgroups"))}
	if g.Unified {
		g.Here = strings.Fields(firstOf(cgroup.Root + "/cgroup.controllers"))
	} else {
		for _, c := range controllers {
			if _, err := os.Stat(filepath.Join(cgroup.Root, c.name)); err == nil {
				g.Here = append(g.Here, c.name)
			}
		}
	}
	g.ReadOnly = errors.Is(unix.Access(cgroup.Root, unix.W_OK), unix.EROFS)
	return g
}

// parseControllers reads /proc/cgroups: lines of a name, a hierarchy, the number of groups, and whether it is on.
func parseControllers(text string) map[string]bool {
	var known map[string]bool
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 4 && !strings.HasPrefix(line, "#") {
			if known == nil {
				known = map[string]bool{}
			}
			known[fields[0]] = fields[3] == "1"
		}
	}
	return known
}

// ReadSysctls returns the settings that the rules ask for.
func ReadSysctls() map[string]string {
	names := []string{"net.ipv4.ip_forward", "user.max_user_namespaces", "vm.overcommit_memory",
		"kernel.unprivileged_userns_clone", "kernel.apparmor_restrict_unprivileged_userns"}
	for _, l := range slices.Concat(limits[:], raised[:], ofUsers[:]) {
		names = append(names, l.name)
	}
	out := map[string]string{}
	for _, name := range names {
		if data, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/")); err == nil {
			out[name] = strings.TrimSpace(string(data))
		}
	}
	return out
}

// readData describes the file system of a directory that exists.
func readData(ctx context.Context, dir string) (Data, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return Data{}, err
	}
	kind, err := host.FileSystemType(dir)
	if err != nil {
		return Data{}, err
	}
	d := Data{Dir: dir, Type: kind, Free: fs.Bavail * uint64(fs.Bsize), NoExec: fs.Flags&unix.ST_NOEXEC != 0,
		NoDev: fs.Flags&unix.ST_NODEV != 0, NoSuid: fs.Flags&unix.ST_NOSUID != 0,
		LostAtReboot: kind == "tmpfs" || kind == "ramfs", OnOverlay: host.Snapshotter(dir) != host.OverlaySnapshotter}
	if _, err := exec.LookPath("mount"); err == nil && !d.OnOverlay {
		d.Overlay = kernel.TryOverlay(ctx, dir)
	}
	return d, nil
}

// readFirewall looks for what would refuse packets from and to a link.
func readFirewall(ctx context.Context, link string) Firewall {
	w := Firewall{Input: host.RefusesInput(ctx), Forward: host.RefusesForward(ctx)}
	w.Drops = readDrops(ctx, link)
	if exec.CommandContext(ctx, "nft", "list", "table", "inet", "firewalld").Run() != nil {
		return w
	}
	w.Firewalld = true
	zone := firewalld(ctx, "--get-zone-of-interface="+link)
	if zone == "" {
		zone = firewalld(ctx, "--get-default-zone")
	}
	for line := range strings.Lines(firewalld(ctx, "--info-zone="+zone)) {
		if target, ok := strings.CutPrefix(strings.TrimSpace(line), "target: "); ok {
			w.ZoneTarget = target
		}
	}
	return w
}

// readDrops returns the chains of Firewall.Drops.
func readDrops(ctx context.Context, link string) []Chain {
	out, err := exec.CommandContext(ctx, "nft", "-j", "list", "chains").Output()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(parseDrops(out), func(c Chain) bool {
		rules, err := exec.CommandContext(ctx, "nft", "list", "chain", c.Family, c.Table, c.Name).Output()
		return err != nil || bytes.Contains(rules, []byte(link))
	})
}

// parseDrops returns the chains of nft's list, in JSON, that drop by default what comes in or is forwarded. iptables
// shows its own, whose names are in capitals.
func parseDrops(list []byte) []Chain {
	var read struct {
		Nftables []struct{ Chain *Chain }
	}
	if json.Unmarshal(list, &read) != nil {
		return nil
	}
	var drops []Chain
	for _, entry := range read.Nftables {
		c := entry.Chain
		if c != nil && c.Policy == "drop" && (c.Hook == "input" || c.Hook == "forward") &&
			c.Name != "INPUT" && c.Name != "FORWARD" && slices.Contains([]string{"ip", "ip6", "inet"}, c.Family) {
			drops = append(drops, *c)
		}
	}
	return drops
}

// firewalld asks firewalld. It returns "" if there is no answer.
func firewalld(ctx context.Context, question string) string {
	out, err := exec.CommandContext(ctx, "firewall-cmd", question).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// memoryOf reads /proc/meminfo, whose numbers are in KiB.
func memoryOf(text string) (available, swap uint64) {
	into := map[string]*uint64{"MemAvailable:": &available, "SwapTotal:": &swap}
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 1 && into[fields[0]] != nil {
			if n, err := strconv.ParseUint(fields[1], 10, 64); err == nil {
				*into[fields[0]] = n << 10
			}
		}
	}
	return available, swap
}
