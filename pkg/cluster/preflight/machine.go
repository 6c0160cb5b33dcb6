package preflight

import (
	"time"

	"bonsai/pkg/cluster/host/kernel"
)

// Machine describes a machine, as far as the rules ask. Read fills it.
type Machine struct {
	Distribution Distribution
	Kernel       Kernel
	Cgroups      Cgroups
	// Programs are the programs and plug-ins that a cluster executes, and whether they are there.
	Programs []Program
	// Sysctls are the kernel's settings by their names, such as net.ipv4.ip_forward. Those that the kernel lacks are
	// not there.
	Sysctls map[string]string
	// SysctlsReadOnly: nobody may change them, as in a container that is not privileged.
	SysctlsReadOnly bool
	// Account is the user in whose namespaces this process runs; nil: it runs as root of the machine.
	Account  *Account
	Data     Data
	Firewall Firewall
	// Memory and Swap are in bytes: what programs can still have, and the size of all swap areas.
	Memory, Swap uint64
	AppArmor     bool   // it is on
	SELinux      string // enforcing, permissive or "" (off)
	// Now is the machine's time. Known is a moment that has certainly passed: the program, or the cluster's
	// configuration, was written then.
	Now, Known time.Time
}

// Kernel describes a kernel.
type Kernel struct {
	Release string // as uname -r has it
	// Options are the options of its configuration with their values. It is nil if the configuration is nowhere.
	Options map[string]string
	// BuiltIn and Modules are the modules that it has built in, and those that modprobe can load. They are nil if
	// /lib/modules has no directory for the kernel.
	BuiltIn, Modules map[string]bool
	// Lacks are the features that were tried and do not work.
	Lacks []kernel.Lack
	// Has are the options of marks whose feature is there.
	Has map[string]bool
}

// Cgroups describes the control groups.
type Cgroups struct {
	Unified bool // cgroup v2 only
	// Here are the controllers in the hierarchies that a cluster would use.
	Here []string
	// Known are the controllers that the kernel was built with, and whether they are on. It is nil if the kernel does
	// not say.
	Known    map[string]bool
	ReadOnly bool // no group can be made
}

// Program is a program that a cluster executes.
type Program struct {
	Name  string // without its path, or CNIPlugins
	Path  string // where it must be; "": on the path of programs
	Found bool
}

// Data describes the file system of the data directory.
type Data struct {
	Dir                     string
	Type                    string // such as ext4
	NoExec, NoDev, NoSuid   bool
	Overlay                 error  // why the kernel mounts no overlay on it
	Free                    uint64 // in bytes
	OnOverlay, LostAtReboot bool
}

// Firewall describes what else decides about packets on the machine.
type Firewall struct {
	// Input and Forward: iptables refuses by default what the machine did not ask for, and what it forwards.
	Input, Forward bool
	Firewalld      bool // it runs
	// ZoneTarget is the target of the zone in which firewalld has the cluster's link, for example ACCEPT.
	ZoneTarget string
	// Drops are the chains of nftables that drop by default, are not those of iptables, and do not mention the link.
	Drops []Chain
}

// Chain is a base chain of nftables.
type Chain struct {
	Family, Table, Name string
	Hook                string // input or forward
	Policy              string
}

// Needs describe the cluster that is wanted.
type Needs struct {
	Nodes   int
	Egress  bool   // nodes and pods reach what the machine reaches
	Link    string // by which the host reaches nodes or pods
	Others  bool   // nodes are on other machines
	APIPort int    // of the API server
	// EtcdClientPort and EtcdPeerPort are what control planes on other machines reach.
	EtcdClientPort, EtcdPeerPort int
}
