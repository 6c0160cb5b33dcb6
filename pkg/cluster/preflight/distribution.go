package preflight

import (
	"slices"
	"strings"
)

// Distribution describes the machine's distribution, by os-release(5).
type Distribution struct {
	ID   string   // such as debian
	Like []string // those that it is like, by ID_LIKE
}

// manager is a package manager.
type manager int

const (
	unknown manager = iota
	apt
	dnf
	pacman
	apk
	zypper
)

// managers are the package managers of distributions, and of those that are like them.
var managers = map[string]manager{"debian": apt, "ubuntu": apt, "fedora": dnf, "rhel": dnf, "centos": dnf,
	"amzn": dnf, "arch": pacman, "alpine": apk, "suse": zypper, "opensuse": zypper, "opensuse-leap": zypper,
	"opensuse-tumbleweed": zypper, "sles": zypper}

// installs are the commands that install packages.
var installs = map[manager]string{apt: "apt-get install -y ", dnf: "dnf install -y ", pacman: "pacman -S --needed ",
	apk: "apk add ", zypper: "zypper install -y "}

// packages are the packages that have a program, where a package manager has it under another name than "".
var packages = map[string]map[manager]string{
	"ip":        {unknown: "iproute2", dnf: "iproute"},
	"nft":       {unknown: "nftables"},
	"mount":     {unknown: "util-linux", apt: "mount"},
	"nsenter":   {unknown: "util-linux"},
	"modprobe":  {unknown: "kmod"},
	"newuidmap": {unknown: "shadow-utils", apt: "uidmap", pacman: "shadow", apk: "shadow-uidmap", zypper: "shadow"},
	"newgidmap": {unknown: "shadow-utils", apt: "uidmap", pacman: "shadow", apk: "shadow-uidmap", zypper: "shadow"},
	"pasta":     {unknown: "passt"}, "slirp4netns": {unknown: "slirp4netns"},
	"ctr":        {unknown: "containerd", apk: "containerd-ctr"},
	"iptables":   {unknown: "iptables", dnf: "iptables-nft"},
	CNIPlugins:   {unknown: "containernetworking-plugins", pacman: "cni-plugins", apk: "cni-plugins", zypper: "cni-plugins"},
	moreModules:  {dnf: "kernel-modules-extra"},
	kernelImage:  {apt: "linux-image-amd64", dnf: "kernel", pacman: "linux", apk: "linux-lts", zypper: "kernel-default"},
	"containerd": {unknown: "containerd"}, "runc": {unknown: "runc"}, "crun": {unknown: "crun"},
}

// CNIPlugins are no program, but in a package as programs are.
const CNIPlugins = "the CNI plug-ins"

const (
	moreModules = "the other modules of the kernel that runs"
	kernelImage = "the distribution's kernel"
)

// manager returns the distribution's package manager.
func (d Distribution) manager() manager {
	for _, id := range append([]string{d.ID}, d.Like...) {
		if m, ok := managers[id]; ok {
			return m
		}
	}
	return unknown
}

// install returns the command that installs what has all the names, or "" if the distribution or one of the names is
// not known.
func (d Distribution) install(names ...string) string {
	m := d.manager()
	command, ok := installs[m]
	if !ok {
		return ""
	}
	var wanted []string
	for _, name := range names {
		of, ok := packages[name][m]
		if !ok {
			of, ok = packages[name][unknown]
		}
		if !ok {
			return ""
		}
		if !slices.Contains(wanted, of) {
			wanted = append(wanted, of)
		}
	}
	return command + strings.Join(wanted, " ")
}

// installModules returns the command that installs modules that the distribution has apart from its kernel.
func (d Distribution) installModules(release string) string {
	if d.ID == "ubuntu" || slices.Contains(d.Like, "ubuntu") {
		return "apt-get install -y linux-modules-extra-" + release
	}
	return d.install(moreModules)
}

// ParseDistribution reads the text of an os-release file.
func ParseDistribution(text string) Distribution {
	var d Distribution
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, `"'`)
		switch key {
		case "ID":
			d.ID = value
		case "ID_LIKE":
			d.Like = strings.Fields(value)
		}
	}
	return d
}
