package preflight

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/cluster/host/kernel"
)

// healthy is a machine that lacks nothing: each test takes something from it.
func healthy() Machine {
	has := map[string]bool{}
	for _, m := range marks {
		has[m.option] = true
	}
	settings := map[string]string{"net.ipv4.ip_forward": "0", "vm.overcommit_memory": "0",
		"user.max_user_namespaces": "15000"}
	for _, l := range slices.Concat(limits[:], raised[:]) {
		settings[l.name] = fmt.Sprint(l.base + 9*l.node)
	}
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	return Machine{
		Distribution: Distribution{ID: "debian"},
		Kernel: Kernel{Release: "6.12.1-amd64", Has: has, Options: map[string]string{"CONFIG_BRIDGE": "y"},
			Modules: map[string]bool{"veth": true}},
		Cgroups:  Cgroups{Unified: true, Here: []string{"cpuset", "cpu", "io", "memory", "pids"}},
		Programs: []Program{{Name: "nft", Found: true}},
		Sysctls:  settings, AppArmor: true, Memory: 8 << 30, Now: now, Known: now.Add(-time.Hour),
		Data: Data{Dir: "/var/lib", Type: "ext4", Free: 10 << 30},
	}
}

var wanted = Needs{Nodes: 2, Egress: true, Link: "bonsai-1", APIPort: 6443,
	EtcdClientPort: 2379, EtcdPeerPort: 2380}

// TestHealthy: a machine that has everything gets one line a subject, and nothing to read for `bonsai up`.
func TestHealthy(t *testing.T) {
	t.Parallel()
	found := Inspect(healthy(), wanted)
	for _, f := range found {
		if f.Level != OK || f.Run != "" || f.Text == "" || f.Subject == "" {
			t.Errorf("%v %+v", f.Level, f)
		}
	}
	if err := Errors(found); err != nil || len(Warnings(found)) > 0 {
		t.Error(err)
	}
}

// TestLacks: each lack has its weight, is named, and has the command that mends it.
func TestLacks(t *testing.T) {
	t.Parallel()
	lack := kernel.Lack{Module: "br_netfilter", Option: "CONFIG_BRIDGE_NETFILTER", Need: "Services",
		Err: errors.New("FATAL: not found")}
	for _, test := range []struct {
		name  string
		spoil func(*Machine, *Needs)
		level Level
		says  []string
		run   string
	}{
		{"an old kernel", func(m *Machine, _ *Needs) { m.Kernel.Release = "5.4.0-150-generic" }, Warning,
			[]string{"5.4.0-150-generic", "5.13"}, "apt-get install -y linux-image-amd64"},
		{"a kernel of another kind", func(m *Machine, _ *Needs) { m.Kernel.Release = "6.6+" }, OK,
			[]string{"6.6+"}, ""},
		{"a module that modprobe cannot load", func(m *Machine, _ *Needs) {
			m.Kernel.Modules["br_netfilter"] = true
			m.Kernel.Options["CONFIG_BRIDGE_NETFILTER"] = "m"
			m.Kernel.Lacks = []kernel.Lack{lack}
		}, Missing, []string{"kernel module br_netfilter is not loaded, which Services need", "not found"},
			"modprobe br_netfilter"},
		{"a module that is not installed", func(m *Machine, _ *Needs) {
			m.Distribution = Distribution{ID: "ubuntu", Like: []string{"debian"}}
			m.Kernel.Options["CONFIG_BRIDGE_NETFILTER"] = "m"
			m.Kernel.Lacks = []kernel.Lack{lack}
		}, Missing, []string{"CONFIG_BRIDGE_NETFILTER is a module of this kernel, but not installed"},
			"apt-get install -y linux-modules-extra-6.12.1-amd64"},
		{"modules of another kernel", func(m *Machine, _ *Needs) {
			m.Kernel.Modules, m.Kernel.Options["CONFIG_BRIDGE_NETFILTER"] = nil, "m"
			m.Kernel.Lacks = []kernel.Lack{lack}
		}, Missing, []string{"no /lib/modules/6.12.1-amd64"}, "reboot"},
		{"a kernel without the option", func(m *Machine, _ *Needs) {
			m.Distribution = Distribution{ID: "fedora"}
			m.Kernel.Lacks = []kernel.Lack{lack}
		}, Missing, []string{"CONFIG_BRIDGE_NETFILTER neither built in nor as a module"}, "dnf install -y kernel"},
		{"a module without a part", func(m *Machine, _ *Needs) {
			lack := lack
			lack.Loaded = true
			m.Kernel.Options["CONFIG_BRIDGE_NETFILTER"] = "y"
			m.Kernel.Lacks = []kernel.Lack{lack}
		}, Missing, []string{"is loaded, but Services do not work", "CONFIG_BRIDGE_NETFILTER"}, ""},
		{"a kernel that says nothing about itself", func(m *Machine, _ *Needs) {
			m.Kernel.Options, m.Kernel.Modules = nil, nil
			m.Kernel.Lacks = []kernel.Lack{lack}
		}, Missing, []string{"FATAL: not found", "CONFIG_BRIDGE_NETFILTER"}, "modprobe br_netfilter"},
		{"a kernel whose modules are known", func(m *Machine, _ *Needs) {
			m.Kernel.Options = nil
			m.Kernel.Lacks = []kernel.Lack{lack}
		}, Missing, []string{"built without CONFIG_BRIDGE_NETFILTER, or its module is not installed"},
			"apt-get install -y linux-image-amd64"},
		{"no message queues", func(m *Machine, _ *Needs) { m.Kernel.Has["CONFIG_POSIX_MQUEUE"] = false }, Missing,
			[]string{"no CONFIG_POSIX_MQUEUE", "mqueue"}, "apt-get install -y linux-image-amd64"},
		{"no seccomp", func(m *Machine, _ *Needs) { m.Kernel.Has["CONFIG_SECCOMP_FILTER"] = false }, Warning,
			[]string{"CONFIG_SECCOMP_FILTER", "RuntimeDefault"}, ""},
		{"no user namespaces", func(m *Machine, _ *Needs) { m.Kernel.Has["CONFIG_USER_NS"] = false }, Note,
			[]string{"hostUsers"}, ""},
		{"cgroup v1", func(m *Machine, _ *Needs) { m.Cgroups.Unified = false }, Note,
			[]string{"v1", "systemd.unified_cgroup_hierarchy=1"}, ""},
		{"a controller that is off", func(m *Machine, _ *Needs) {
			m.Cgroups.Here = []string{"cpu", "cpuset", "pids"}
			m.Cgroups.Known = map[string]bool{"memory": false}
		}, Missing, []string{"the cgroup controller memory is switched off", "cgroup_enable=memory"}, ""},
		{"a controller that the kernel lacks", func(m *Machine, _ *Needs) {
			m.Cgroups.Here = []string{"cpu", "memory", "pids"}
			m.Cgroups.Known = map[string]bool{"memory": true}
		}, Missing, []string{"no cgroup controller cpuset", "CONFIG_CPUSETS"}, "apt-get install -y linux-image-amd64"},
		{"a controller that is not delegated", func(m *Machine, _ *Needs) {
			m.Cgroups.Here = []string{"cpu", "memory", "pids"}
			m.Cgroups.Known = map[string]bool{"cpuset": true}
		}, Missing, []string{"cpuset is missing from /sys/fs/cgroup/cgroup.controllers", "not delegated"}, ""},
		{"a controller of v1 that is not mounted", func(m *Machine, _ *Needs) {
			m.Cgroups = Cgroups{Here: []string{"cpu", "memory", "pids"}, Known: map[string]bool{"cpuset": true}}
		}, Missing, []string{"cpuset is not mounted"}, "mkdir -p /sys/fs/cgroup/cpuset && mount -t cgroup -o cpuset cgroup " +
			"/sys/fs/cgroup/cpuset"},
		{"cgroups that are read-only", func(m *Machine, _ *Needs) { m.Cgroups.ReadOnly = true }, Missing,
			[]string{"/sys/fs/cgroup is read-only"}, ""},
		{"few namespaces", func(m *Machine, _ *Needs) { m.Sysctls["user.max_net_namespaces"] = "20" }, Warning,
			[]string{"user.max_net_namespaces is 20", "2 nodes"}, "sysctl -w user.max_net_namespaces=104"},
		{"few connections", func(m *Machine, _ *Needs) { m.Sysctls["net.netfilter.nf_conntrack_max"] = "8192" },
			Warning, []string{"tracked connections"}, "sysctl -w net.netfilter.nf_conntrack_max=32768"},
		{"few watches, which up raises", func(m *Machine, _ *Needs) {
			m.Sysctls["fs.inotify.max_user_instances"] = "128"
		}, OK, nil, ""},
		{"few watches, which nobody may raise", func(m *Machine, _ *Needs) {
			m.Sysctls["fs.inotify.max_user_instances"] = "128"
			m.SysctlsReadOnly, m.Sysctls["net.ipv4.ip_forward"] = true, "1"
		}, Warning, []string{"inotify instances"}, "sysctl -w fs.inotify.max_user_instances=384"},
		{"no forwarding, which nobody may change", func(m *Machine, _ *Needs) { m.SysctlsReadOnly = true }, Missing,
			[]string{"net.ipv4.ip_forward is 0", "--egress=false"}, "sysctl -w net.ipv4.ip_forward=1"},
		{"no forwarding, and no egress", func(m *Machine, n *Needs) { m.SysctlsReadOnly, n.Egress = true, false }, OK,
			nil, ""},
		{"strict accounting", func(m *Machine, _ *Needs) { m.Sysctls["vm.overcommit_memory"] = "2" }, Warning,
			[]string{"vm.overcommit_memory is 2"}, "sysctl -w vm.overcommit_memory=0"},
		{"no user namespaces allowed", func(m *Machine, _ *Needs) { m.Sysctls["user.max_user_namespaces"] = "0" }, Note,
			[]string{"hostUsers"}, "sysctl -w user.max_user_namespaces=10000"},
		{"a program", func(m *Machine, _ *Needs) { m.Programs[0].Found = false }, Missing,
			[]string{"the program nft is missing"}, "apt-get install -y nftables"},
		{"an unknown distribution", func(m *Machine, _ *Needs) {
			m.Programs[0].Found, m.Distribution = false, Distribution{ID: "plan9"}
		}, Missing, []string{"the program nft is missing"}, ""},
		{"plug-ins", func(m *Machine, _ *Needs) {
			m.Distribution = Distribution{ID: "alpine"}
			m.Programs = append(m.Programs, Program{Name: CNIPlugins, Path: "/usr/lib/cni/bridge"})
		}, Missing, []string{"the CNI plug-ins are missing from /usr/lib/cni"}, "apk add cni-plugins"},
		{"a file system without overlays", func(m *Machine, _ *Needs) {
			m.Data.Type, m.Data.Overlay = "xfs", errors.New("wrong fs type")
		}, Missing, []string{"xfs of /var/lib", "wrong fs type", "ftype=1"}, ""},
		{"NFS", func(m *Machine, _ *Needs) { m.Data.Type, m.Data.Overlay = "nfs4", errors.New("invalid argument") },
			Missing, []string{"nfs4 of /var/lib", "--data-dir"}, ""},
		{"an overlay", func(m *Machine, _ *Needs) { m.Data.Type, m.Data.OnOverlay = "overlay", true }, Note,
			[]string{"images are copied"}, ""},
		{"noexec", func(m *Machine, _ *Needs) { m.Data.NoExec = true }, Warning,
			[]string{"/var/lib is mounted noexec"}, ""},
		{"nodev", func(m *Machine, _ *Needs) { m.Data.NoDev = true }, Note, []string{"nodev", "block volumes"}, ""},
		{"nosuid", func(m *Machine, _ *Needs) { m.Data.NoSuid = true }, Note, []string{"nosuid"}, ""},
		{"memory for a file system", func(m *Machine, _ *Needs) { m.Data.Type, m.Data.LostAtReboot = "tmpfs", true },
			Warning, []string{"a reboot loses the cluster"}, ""},
		{"little memory", func(m *Machine, _ *Needs) { m.Memory = 500 << 20 }, Warning,
			[]string{"500 MiB of memory are available", "2 nodes takes 520 MiB"}, ""},
		{"a clock that stopped", func(m *Machine, _ *Needs) { m.Now = time.Unix(0, 0) }, Warning,
			[]string{"1970-01-01T00:00:00Z", "2026-11-28T11:00:00Z"}, "timedatectl set-ntp true"},
		{"a clock that is a little behind", func(m *Machine, _ *Needs) { m.Now = m.Known.Add(-time.Minute) }, OK, nil,
			""},
		{"no AppArmor", func(m *Machine, _ *Needs) { m.AppArmor = false }, Note, []string{"AppArmor profile"}, ""},
		{"SELinux", func(m *Machine, _ *Needs) { m.SELinux = "enforcing" }, Warning, []string{"enforcing"},
			"ausearch -m avc -ts recent"},
		{"firewalld", func(m *Machine, _ *Needs) { m.Firewall = Firewall{Firewalld: true, ZoneTarget: "default"} },
			Missing, []string{"firewalld refuses", "bonsai-1"},
			"firewall-cmd --permanent --zone=trusted --add-interface=bonsai-1 && firewall-cmd --reload"},
		{"firewalld, with the link where it belongs", func(m *Machine, _ *Needs) {
			m.Firewall = Firewall{Firewalld: true, ZoneTarget: "ACCEPT"}
		}, OK, nil, ""},
		{"ufw", func(m *Machine, _ *Needs) { m.Firewall = Firewall{Input: true, Forward: true} }, OK,
			[]string{"`bonsai up` adds rules"}, ""},
		{"a chain that drops", func(m *Machine, _ *Needs) {
			m.Firewall.Drops = []Chain{{Family: "inet", Table: "filter", Name: "input", Hook: "input"}}
		}, Warning, []string{"the chain inet filter input drops by default", "API server"},
			"nft insert rule inet filter input iifname bonsai-1 accept"},
		{"a chain that forwards nothing", func(m *Machine, n *Needs) {
			m.Firewall.Drops, n.Egress = []Chain{{Hook: "forward"}}, false
		}, OK, nil, ""},
		{"ufw, and other machines", func(m *Machine, n *Needs) { m.Firewall.Input, n.Others = true, true }, Note,
			[]string{"TCP 6443 and 10250", "control planes also 2379 and 2380"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m, n := healthy(), wanted
			test.spoil(&m, &n)
			found := slices.DeleteFunc(Inspect(m, n), func(f Finding) bool {
				if f.Level != OK { // cgroup v1 is one note, beside what it lacks
					return f.Level == Note && test.level == Missing
				}
				return test.level != OK || !slices.ContainsFunc(test.says, func(s string) bool {
					return strings.Contains(f.Text, s)
				})
			})
			if test.level == OK && len(test.says) == 0 {
				if len(found) > 0 {
					t.Errorf("found %v", found)
				}
				return
			}
			if len(found) != 1 {
				t.Fatalf("%d findings: %v", len(found), found)
			}
			f := found[0]
			if f.Level != test.level || f.Run != test.run {
				t.Errorf("%v, run %q, not %v, %q", f.Level, f.Run, test.level, test.run)
			}
			for _, text := range test.says {
				if !strings.Contains(f.Text, text) {
					t.Errorf("does not say %q: %s", text, f.Text)
				}
			}
		})
	}
}

// TestAllAtOnce: an error names everything that is missing, and the table counts it.
func TestAllAtOnce(t *testing.T) {
	t.Parallel()
	m := healthy()
	m.Programs, m.Cgroups.ReadOnly, m.Data.NoExec = []Program{{Name: "ip"}, {Name: "nft"}}, true, true
	found := append(Inspect(m, wanted), Refused("cluster", nil, errors.New("the image is missing"))...)
	err := Errors(found)
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range []string{"apt-get install -y iproute2", "apt-get install -y nftables", "read-only", "the image"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("no %q in %v", text, err)
		}
	}
	if w := Warnings(found); len(w) != 1 || strings.Contains(err.Error(), "noexec") {
		t.Errorf("%q, %v", w, err)
	}
	var out strings.Builder
	if err := PrintTable(&out, found); err != nil || !strings.Contains(out.String(), "4 missing, 1 warning, 0 notes") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestParseDistribution: the package manager follows from the distribution or from what it is like.
func TestParseDistribution(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ID=debian\nVERSION_ID=\"12\"\n":                                 "apt-get install -y iproute2",
		"NAME=\"Linux Mint\"\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n": "apt-get install -y iproute2",
		"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n":                 "dnf install -y iproute",
		"ID=arch\n":   "pacman -S --needed iproute2",
		"ID=alpine\n": "apk add iproute2",
		"ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n": "zypper install -y iproute2",
		"": "",
	} {
		if got := ParseDistribution(text).install("ip"); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

// TestParsers read the kernel's own files.
func TestParsers(t *testing.T) {
	t.Parallel()
	if got := parseOptions("#\n# CONFIG_A is not set\nCONFIG_B=y\nCONFIG_C=m\n"); len(got) != 2 || got["CONFIG_B"] != "y" {
		t.Errorf("%v", got)
	}
	if got := parseControllers("#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t0\t5\t1\nmemory\t0\t5\t0\n"); !got["cpu"] ||
		got["memory"] || len(got) != 2 {
		t.Errorf("%v", got)
	}
	if got := parseControllers(""); got != nil {
		t.Errorf("%v", got)
	}
	drops := parseDrops([]byte(`{"nftables": [{"metainfo": {"version": "1.0"}},
		{"chain": {"family": "inet", "table": "filter", "name": "input", "type": "filter", "hook": "input", "policy": "drop"}},
		{"chain": {"family": "ip", "table": "filter", "name": "INPUT", "hook": "input", "policy": "drop"}},
		{"chain": {"family": "inet", "table": "filter", "name": "own"}},
		{"chain": {"family": "ip6", "table": "f", "name": "out", "hook": "output", "policy": "drop"}}]}`))
	if len(drops) != 1 || drops[0].Table != "filter" || drops[0].Name != "input" {
		t.Errorf("%v", drops)
	}
	if a, s := memoryOf("MemTotal: 9 kB\nMemAvailable:   2048 kB\nSwapTotal: 1024 kB\n"); a != 2<<20 || s != 1<<20 {
		t.Errorf("%d %d", a, s)
	}
}

// TestRead: the machine that the tests run on can be described, and nothing stays behind.
func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, err := Read(t.Context(), Wanted{Needs: wanted, DataDir: dir + "/not/there",
		Programs: []Program{{Name: "sh"}, {Name: "no-such-program"}}})
	if err != nil {
		t.Fatal(err)
	}
	if m.Kernel.Release == "" || m.Data.Type == "" || m.Data.Dir != dir || m.Memory == 0 || m.Now.IsZero() ||
		len(m.Sysctls) == 0 || !m.Programs[0].Found || m.Programs[1].Found {
		t.Errorf("%+v", m)
	}
}
