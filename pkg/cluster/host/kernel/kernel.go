package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
)

// Feature is a feature of the kernel that a cluster cannot do without.
type Feature struct {
	// module has the feature where the kernel has not built it in.
	module string
	// need says what the cluster uses it for.
	need string
	// try uses the feature and leaves nothing behind. It returns an error if the kernel does not have it.
	try func(context.Context) error
}

// Group is a set of features that are cheap to try together. The others build on the first one.
type Group struct {
	all      func(context.Context) error // tries all of them at once
	features []Feature
}

// LoadModule loads a kernel module, and those that it needs, with modprobe(8).
func LoadModule(ctx context.Context, module string) error {
	return host.Run(ctx, "", "modprobe", module)
}

// Check tries every feature, and calls load with the modules of those that are missing, in order. It returns an error
// for each feature that is still missing. The kernel itself loads modules of packet rules, links and file systems when
// they are first used. br_netfilter is different: it only has settings, which nothing can use before it is loaded.
func Check(ctx context.Context, groups []Group, load func(ctx context.Context, module string) error) error {
	var errs []error
	for _, g := range groups {
		if g.all(ctx) == nil {
			continue
		}
		for i, f := range g.features {
			err := f.check(ctx, load)
			errs = append(errs, err)
			if err != nil && i == 0 {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// check tries the feature, and once more with its module loaded.
func (f Feature) check(ctx context.Context, load func(ctx context.Context, module string) error) error {
	tried := f.try(ctx)
	if tried == nil {
		return nil
	}
	failed := load(ctx, f.module)
	if failed == nil {
		if tried = f.try(ctx); tried == nil {
			return nil
		}
		return fmt.Errorf("the kernel module %s is loaded, but %s do not work: %w", f.module, f.need, tried)
	}
	return fmt.Errorf("kernel module %s is not loaded, which %s need (run: modprobe %s): %w", f.module, f.need,
		f.module, failed)
}

// linkLines make the kinds of links that connect nodes and pods.
var linkLines = [...]line{
	{"bridge", "the network of nodes and that of pods", "link add br0 type bridge"},
	{"veth", "the network of nodes and that of pods", "link add v0 type veth peer name v1"},
}

// nftLines are a rule for each expression of nftables in the rules of kube-proxy, bonsai-network and the machine's
// own tables.
var nftLines = [...]line{
	{"nf_tables", "Services", "add chain inet try try-forward { type filter hook forward priority filter; }"},
	{"nft_chain_nat", "Services", "add chain inet try try-nat { type nat hook postrouting priority srcnat; }"},
	{"nft_ct", "Services", "add rule inet try plain ct state established accept"},
	{"nft_nat", "Services", "add chain inet try try-dnat { type nat hook prerouting priority dstnat; }; add rule inet try try-dnat dnat ip to 192.0.2.1"},
	{"nft_masq", "packets that leave the cluster",
		"add chain inet try try-masq { type nat hook postrouting priority srcnat; }; add rule inet try try-masq masquerade"},
	{"nft_reject_inet", "Services without endpoints",
		"add chain inet try try-reject { type filter hook forward priority filter; }; add rule inet try try-reject reject"},
	{"nft_fib_inet", "node ports",
		"add chain inet try try-fib { type nat hook prerouting priority dstnat; }; add rule inet try try-fib fib daddr type local accept"},
	{"nft_numgen", "Services", "add rule inet try plain numgen random mod 2 vmap { 0 : accept, 1 : drop }"},
}

const (
	nftBefore = "add table inet try\nadd chain inet try plain\n"
	nftAfter  = ""
)

// iptablesLines are a rule for each extension of iptables in the rules for host ports, which the CNI plug-in portmap
// writes.
var iptablesLines = [...]line{
	{"nft_compat", "host ports", "-A TRY -j RETURN -m comment --comment try"},
	{"xt_mark", "host ports", "-A TRY -m mark --mark 1 -j MARK --set-xmark 1/1"},
	{"xt_multiport", "host ports", "-A TRY -p tcp -m multiport --dports 1,2 -j RETURN"},
	{"xt_addrtype", "host ports", "-A TRY -m addrtype --dst-type LOCAL -j RETURN"},
	{"xt_nat", "host ports", "-A TRY -p tcp -m tcp --dport 1 -j DNAT --to-destination :2"},
	{"xt_MASQUERADE", "host ports", "-A POSTROUTING -j MASQUERADE"},
	{"xt_conntrack", "host ports", "-A TRY -m conntrack --ctstate NEW -j RETURN"},
}

const (
	iptablesBefore = "*nat\n:TRY -\n"
	iptablesAfter  = "COMMIT\n"
)

// neededControllers are the cgroup controllers by which the kubelet gives pods their resources.
var neededControllers = [...]string{"cpu", "cpuset", "memory", "pids"}

// CheckControllers returns an error for each cgroup controller that nodes would miss in the hierarchies at root.
func CheckControllers(root string) error {
	unified, v2 := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	var errs []error
	for _, controller := range neededControllers {
		_, v1 := os.Stat(filepath.Join(root, controller))
		if v2 == nil && !slices.Contains(strings.Fields(string(unified)), controller) || v2 != nil && v1 != nil {
			errs = append(errs, fmt.Errorf(
				"the cgroup controller %s is missing from %s, which pods' resources need (the kernel's command line may switch "+
					"it off: boot with cgroup_enable=%s)", controller, root, controller))
		}
	}
	return errors.Join(errs...)
}

// single is a group of one feature.
func single(f Feature) Group {
	return Group{all: f.try, features: []Feature{f}}
}

// hasFileSystem returns a try that fails unless the kernel can mount file systems of a type (proc_filesystems(5)).
func hasFileSystem(name string) func(context.Context) error {
	return func(context.Context) error {
		data, err := os.ReadFile("/proc/filesystems")
		if err == nil && !slices.Contains(strings.Fields(string(data)), name) {
			err = fmt.Errorf("/proc/filesystems has no %s", name)
		}
		return err
	}
}

// hasSetting returns a try that fails unless the kernel has a setting below /proc/sys.
func hasSetting(name string) func(context.Context) error {
	return func(context.Context) error {
		_, err := os.Stat("/proc/sys/" + name)
		return err
	}
}

// line is a line of a script that uses the feature of one module.
type line struct{ module, need, line string }

// lines are the lines of a script, and what stands before and after any of them.
type lines struct {
	before, after string
	lines         []line
}

// script returns a script of the given lines.
func (k lines) script(lines ...line) string {
	script := k.before
	for _, l := range lines {
		script += l.line + "\n"
	}
	return script + k.after
}

// tried returns the features that the lines of a script use. The program that runs a script has a network namespace
// of its own: everything that it makes goes with it.
func tried(k lines, program ...string) Group {
	run := func(lines ...line) func(context.Context) error {
		return func(ctx context.Context) error { return inFreshNetwork(ctx, k.script(lines...), program...) }
	}
	g := Group{all: run(k.lines...)}
	for _, l := range k.lines {
		g.features = append(g.features, Feature{module: l.module, need: l.need, try: run(l)})
	}
	return g
}

// inFreshNetwork runs a program with a script as its input in a new network namespace.
func inFreshNetwork(ctx context.Context, script string, program ...string) error {
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", program[0], err, firstLine(out))
	}
	return nil
}

// firstLine returns the first line of a program's output, for an error.
func firstLine(out []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	return line
}
