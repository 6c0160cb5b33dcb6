package kernel

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
)

// Feature is a feature of the kernel that a cluster cannot do without.
type Feature struct {
	// module has the feature where the kernel has not built it in.
	module string
	// option is the option of the kernel's configuration that makes the module, or builds the feature in.
	option string
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

// Lack is a feature that does not work, nor after an attempt to load its module.
type Lack struct {
	Module string // that has the feature
	Option string // of the kernel's configuration
	Need   string // what the cluster uses the feature for, in the plural
	Loaded bool   // the module could be loaded, or is built in, and the feature still does not work
	Err    error  // why the module could not be loaded or, if it could, why the feature does not work
}

// LoadModule loads a kernel module, and those that it needs, with modprobe(8). Where only root may do that, as in a
// user namespace, it uses what has the kernel itself load the module.
func LoadModule(ctx context.Context, module string) error {
	err := host.Run(ctx, "", "modprobe", module)
	if use := uses[module]; err != nil && use != nil {
		use(ctx)
		if _, errStat := os.Stat("/sys/module/" + module); errStat == nil {
			return nil
		}
	}
	return err
}

// uses are what has the kernel load a module: only whether it is there afterwards counts. The kernel loads the others
// when a feature is tried.
var uses = map[string]func(context.Context){
	"br_netfilter": func(ctx context.Context) {
		_ = inFreshNetwork(ctx, "*filter\n-A FORWARD -m physdev --physdev-is-in -j RETURN\nCOMMIT\n",
			"iptables-restore")
	},
	"nf_conntrack": func(ctx context.Context) {
		_ = inFreshNetwork(ctx, nftBefore+"add rule inet try plain ct state established accept\n", "nft", "-f", "-")
	},
	"overlay": func(context.Context) {
		if fd, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC); err == nil {
			_ = unix.Close(fd) // nothing was mounted
		}
	},
}

// Check tries every feature, and calls load with the modules of those that are missing, in order. It returns the
// features that are still missing. The kernel itself loads modules of packet rules, links and file systems when they
// are first used. br_netfilter is different: it only has settings, which nothing can use before it is loaded.
func Check(ctx context.Context, groups []Group, load func(ctx context.Context, module string) error) []Lack {
	var lacks []Lack
	for _, g := range groups {
		if g.all(ctx) == nil {
			continue
		}
		for i, f := range g.features {
			lack, missing := f.check(ctx, load)
			if !missing {
				continue
			}
			lacks = append(lacks, lack)
			if i == 0 { // the others build on it
				break
			}
		}
	}
	return lacks
}

// check tries the feature, and once more with its module loaded.
func (f Feature) check(ctx context.Context, load func(ctx context.Context, module string) error) (Lack, bool) {
	tried := f.try(ctx)
	if tried == nil {
		return Lack{}, false
	}
	lack := Lack{Module: f.module, Option: f.option, Need: f.need}
	if lack.Err = load(ctx, f.module); lack.Err != nil {
		return lack, true
	}
	lack.Loaded, lack.Err = true, f.try(ctx)
	return lack, lack.Err != nil
}

// linkLines make the kinds of links that connect nodes and pods.
var linkLines = [...]line{
	{"bridge", "CONFIG_BRIDGE", "the network of nodes and that of pods", "link add br0 type bridge"},
	{"veth", "CONFIG_VETH", "the network of nodes and that of pods", "link add v0 type veth peer name v1"},
}

// nftLines are a rule for each expression of nftables in the rules of kube-proxy, bonsai-network and the machine's
// own tables.
var nftLines = [...]line{
	{"nf_tables", "CONFIG_NF_TABLES_INET", "Services", "add chain inet try try-forward { type filter hook forward priority filter; }"},
	{"nft_chain_nat", "CONFIG_NFT_NAT", "Services", "add chain inet try try-nat { type nat hook postrouting priority srcnat; }"},
	{"nft_ct", "CONFIG_NFT_CT", "Services", "add rule inet try plain ct state established accept"},
	{"nft_nat", "CONFIG_NFT_NAT", "Services", "add chain inet try try-dnat { type nat hook prerouting priority dstnat; }; add rule inet try try-dnat dnat ip to 192.0.2.1"},
	{"nft_masq", "CONFIG_NFT_MASQ", "packets that leave the cluster",
		"add chain inet try try-masq { type nat hook postrouting priority srcnat; }; add rule inet try try-masq masquerade"},
	{"nft_reject_inet", "CONFIG_NFT_REJECT_INET", "Services without endpoints",
		"add chain inet try try-reject { type filter hook forward priority filter; }; add rule inet try try-reject reject"},
	{"nft_fib_inet", "CONFIG_NFT_FIB_INET", "node ports",
		"add chain inet try try-fib { type nat hook prerouting priority dstnat; }; add rule inet try try-fib fib daddr type local accept"},
	{"nft_numgen", "CONFIG_NFT_NUMGEN", "Services", "add rule inet try plain numgen random mod 2 vmap { 0 : accept, 1 : drop }"},
}

const (
	nftBefore = "add table inet try\nadd chain inet try plain\n"
	nftAfter  = ""
)

// iptablesLines are a rule for each extension of iptables in the rules for host ports, which the CNI plug-in portmap
// writes.
var iptablesLines = [...]line{
	{"nft_compat", "CONFIG_NFT_COMPAT", "host ports", "-A TRY -j RETURN -m comment --comment try"},
	{"xt_mark", "CONFIG_NETFILTER_XT_MARK", "host ports", "-A TRY -m mark --mark 1 -j MARK --set-xmark 1/1"},
	{"xt_multiport", "CONFIG_NETFILTER_XT_MATCH_MULTIPORT", "host ports", "-A TRY -p tcp -m multiport --dports 1,2 -j RETURN"},
	{"xt_addrtype", "CONFIG_NETFILTER_XT_MATCH_ADDRTYPE", "host ports", "-A TRY -m addrtype --dst-type LOCAL -j RETURN"},
	{"xt_nat", "CONFIG_NETFILTER_XT_NAT", "host ports", "-A TRY -p tcp -m tcp --dport 1 -j DNAT --to-destination :2"},
	{"xt_MASQUERADE", "CONFIG_NETFILTER_XT_TARGET_MASQUERADE", "host ports", "-A POSTROUTING -j MASQUERADE"},
	{"xt_conntrack", "CONFIG_NETFILTER_XT_MATCH_CONNTRACK", "host ports", "-A TRY -m conntrack --ctstate NEW -j RETURN"},
}

const (
	iptablesBefore = "*nat\n:TRY -\n"
	iptablesAfter  = "COMMIT\n"
)

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
type line struct{ module, option, need, line string }

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

// tried returns the features that the lines of a script use, as one group. The program that runs a script has a network
// namespace of its own: everything that it makes goes with it. Without the program there is no group: nothing could be
// tried, and the lack of a program is not the kernel's.
func tried(k lines, program ...string) []Group {
	if _, err := exec.LookPath(program[0]); err != nil {
		return nil
	}
	run := func(lines ...line) func(context.Context) error {
		return func(ctx context.Context) error { return inFreshNetwork(ctx, k.script(lines...), program...) }
	}
	g := Group{all: run(k.lines...)}
	for _, l := range k.lines {
		g.features = append(g.features, Feature{module: l.module, option: l.option, need: l.need, try: run(l)})
	}
	return []Group{g}
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

// firstLine returns the first line of a program's output, for an error, and the next one if the first only announces
// it.
func firstLine(out []byte) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if strings.HasSuffix(strings.TrimSpace(line), ":") {
		next, _, _ := strings.Cut(rest, "\n")
		line = strings.TrimSpace(line) + " " + next
	}
	return line
}
