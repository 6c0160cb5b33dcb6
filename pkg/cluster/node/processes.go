package node

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/componentflags"
	"bonsai/pkg/cluster/plan/localimage"
	"bonsai/pkg/cluster/plan/tracestore"
	"bonsai/pkg/cluster/supervise"
)

// Containerd and CTR, its client, are found along the PATH, which says whose they are (programs.SearchPath). containerd
// finds its shim, the OCI runtimes and what the CNI plug-ins execute in the same way.
const (
	Containerd = "containerd"
	CTR        = "ctr"
)

// ContainerdSocket is in the node's own /run.
const ContainerdSocket = "/run/containerd/containerd.sock"

// cniConfDir is where the node's containerd looks for CNI network lists: in the node's own /run, not in the host's
// /etc.
const cniConfDir = "/run/cni/net.d"

// Processes returns the node's own processes: containerd, kubelet, kube-proxy, and the agent of the pod network. All
// except the last are started as Kubernetes' documentation says, so that its own binaries run in their place.
//
// On a machine that has joined, the kubelet's certificate is the node's only identity. The processes that use it wait
// until the kubelet has it.
//
// Otherwise the processes start at the same time: each retries until what it needs answers.
func (n *Config) Processes(log *slog.Logger) []supervise.Process {
	l := plan.Layout(n.DataDir)
	bin := func(name string) string { return filepath.Join(n.BinDir, name) }
	kubelet := l.Kubeconfig("kubelet-" + n.Name)
	kubeletFlags, proxy, network, identified := []string(nil), l.Kubeconfig("proxy-"+n.Name),
		l.Kubeconfig("network-"+n.Name), func(context.Context) {}
	if n.Bootstraps {
		kubeletFlags = []string{"--bootstrap-kubeconfig=" + l.Kubeconfig(plan.BootstrapIdentity(n.Name)),
			"--cert-dir=" + l.At("pki")}
		// The node's only identity is the kubelet's, once it has one.
		proxy, network, identified = kubelet, kubelet, func(ctx context.Context) { waitFile(ctx, kubelet) }
	}
	rows := []supervise.Process{
		{Name: "containerd", Argv: []string{Containerd, "--config", l.Node(n.Name, "etc", "containerd.toml")},
			Before: func(ctx context.Context) {
				// All run before each start of containerd, so never beside it. The order matters: the directory of a
				// task keeps the network of its sandbox in use, so the unfinished tasks go first.
				clearUnfinishedTasks(ctx, "/proc", containerdTasks, log)
				if err := clearLostNetworks(containerdTasks, sandboxSpaces, sandboxAddresses, log); err != nil {
					log.Warn("cannot clear the networks of lost sandboxes", "err", err)
				}
				if err := removeBrokenResults(sandboxResults, log); err != nil {
					log.Warn("cannot remove the broken answers of network plug-ins", "err", err)
				}
			}},
		{Name: "kubelet", Argv: append([]string{bin("kubelet"),
			"--config=" + l.Node(n.Name, "etc", "kubelet.yaml"),
			"--kubeconfig=" + kubelet,
			"--hostname-override=" + n.Name, "--node-ip=" + plan.CommaList(n.IPs()),
		}, kubeletFlags...)},
		{Name: "kube-proxy", Before: identified, Argv: []string{bin("kube-proxy"),
			"--kubeconfig=" + proxy,
			"--hostname-override=" + n.Name, "--cluster-cidr=" + plan.CommaList(n.Podnets), "--proxy-mode=nftables",
			// Every node has all pods' networks as its cluster CIDR. Detection by that would take the pods of other
			// nodes for local ones, and forward them from node ports of policy Local to endpoints elsewhere.
			"--detect-local-mode=BridgeInterface", "--pod-bridge-interface=" + plan.PodBridge,
			// By default kube-proxy changes the machine's table of connections, which belongs to the host.
			fmt.Sprintf("--oom-score-adj=%d", oomScore()), "--conntrack-max-per-core=0", "--conntrack-min=0",
			"--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		}},
		{Name: "bonsai-network", Before: identified, Argv: []string{bin("bonsai-network"),
			"--kubeconfig=" + network,
			"--node-name=" + n.Name, "--cluster-cidr=" + plan.CommaList(n.Podnets), "--cni-conf-dir=" + cniConfDir,
			"--ipam-plugin=" + IPAMPlugin,
		}},
	}
	if n.Addresses[0].Addr().Is6() {
		rows[2].Argv = append(rows[2].Argv, "--healthz-bind-address=[::]:10256")
	}
	if gates := componentflags.Gates("kube-proxy", n.FeatureGates); len(gates) > 0 {
		rows[2].Argv = append(rows[2].Argv, gates...)
	}
	if n.sendsSpans() {
		rows[2].Env = append(rows[2].Env, tracestore.Env+"="+n.tracingFile())
	}
	if n.ForwardsSpans {
		rows = append(rows, supervise.Process{Name: tracestore.Name, Before: identified,
			Argv: tracestore.Forwarder(bin(tracestore.Name), kubelet, l.NodeSpansSocket(n.Name))})
	}
	for i := range rows {
		rows[i].Log = l.NodeLog(n.Name, rows[i].Name)
		if rows[i].Name != tracestore.Name { // the user's flags are for the one that keeps traces
			rows[i].Argv = append(rows[i].Argv, n.UserFlags(rows[i].Name)...)
		}
	}
	return rows
}

// writeConfigs writes the files that the node's processes read. containerd's depends on its version and on what this
// machine permits.
func (n *Config) writeConfigs() error {
	l := plan.Layout(n.DataDir)
	version, err := exec.Command(Containerd, "--version").Output()
	if err != nil {
		return fmt.Errorf("ask containerd for its version: %w", err)
	}
	registries, err := n.writeMirrors()
	if err != nil {
		return fmt.Errorf("write the registry mirrors: %w", err)
	}
	toml := containerdConfig(containerdMajor(string(version)), !hasSysResource(), host.Snapshotter("/var/lib"),
		registries,
		cmp.Or(n.OCIRuntime, plan.DefaultOCIRuntime), foundOCIRuntimes())
	if err := host.WriteFile(l.Node(n.Name, "etc", "containerd.toml"), []byte(toml)); err != nil {
		return err
	}
	if err := os.MkdirAll(l.Node(n.Name, "manifests"), 0o755); err != nil {
		return err
	}
	if n.sendsSpans() {
		if err := host.WriteFile(n.tracingFile(), tracestore.File(l.NodeSpansSocket(n.Name))); err != nil {
			return err
		}
	}
	return host.WriteFile(l.Node(n.Name, "etc", "kubelet.yaml"), []byte(n.KubeletConfig()))
}

// sendsSpans reports whether the node's processes send their spans to the node's socket.
func (n *Config) sendsSpans() bool { return n.Traces || n.ForwardsSpans }

// tracingFile is the file by which kube-proxy sends its spans. The kubelet has the same in its own.
func (n *Config) tracingFile() string {
	return plan.Layout(n.DataDir).Node(n.Name, "etc", "tracing.yaml")
}

// tracingField is the line of the kubelet's file that says where spans go, "" if nobody keeps them.
func (n *Config) tracingField() string {
	if !n.sendsSpans() {
		return ""
	}
	return fmt.Sprintf("tracing: {endpoint: %q, samplingRatePerMillion: %d}\n",
		"unix://"+plan.Layout(n.DataDir).NodeSpansSocket(n.Name), tracestore.AllSpans)
}

// KubeletConfig returns the kubelet's configuration file. Its eviction thresholds for disks are those that a start
// checks (host.EnoughSpace). The threshold of 100 percent keeps the periodic collection from removing images because
// the disk is full; an eviction still removes them.
//
// Some fields follow from where a node runs. The cgroup driver is cgroupfs, because no systemd runs in a node.
// failCgroupV1 is off, because the node mounts the hierarchies of v1 if the host has them (mountKernel). Swap is the
// machine's, and oomScoreAdj is as low as this machine permits.
func (n *Config) KubeletConfig() string {
	l := plan.Layout(n.DataDir)
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %q
containerRuntimeEndpoint: unix://%s
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %q}}
authorization: {mode: Webhook}
%s
clusterDNS: [%s]
clusterDomain: cluster.local
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
oomScoreAdj: %d
resolvConf: %q
staticPodPath: %q
serializeImagePulls: false
evictionHard: {memory.available: %dKi, nodefs.available: %d%%, imagefs.available: %d%%, nodefs.inodesFree: %d%%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
%s%s`, n.anyAddress(), ContainerdSocket, l.PKI("ca.crt"), n.kubeletCertificates(), n.DNSIP,
		oomScore(),
		l.Node(n.Name, "etc", "resolv.conf"), l.Node(n.Name, "manifests"), leastMemory(host.KeptFree()),
		host.LeastSpace, host.LeastSpace, host.LeastInodes, n.tracingField(),
		componentflags.GatesField(n.FeatureGates))
}

// kubeletCertificates returns the fields that say where the kubelet has its certificates from: the cluster's PKI, or
// requests of its own.
func (n *Config) kubeletCertificates() string {
	if n.Bootstraps {
		return "rotateCertificates: true\nserverTLSBootstrap: true"
	}
	l := plan.Layout(n.DataDir)
	return fmt.Sprintf("tlsCertFile: %q\ntlsPrivateKeyFile: %q", l.PKI("kubelet-server-"+n.Name+".crt"),
		l.PKI("kubelet-server-"+n.Name+".key"))
}

// anyAddress is where the kubelet listens: at all of the node's addresses of its first family.
func (n *Config) anyAddress() netip.Addr {
	if n.Addresses[0].Addr().Is6() {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// containerdMajor reads "containerd <package> <version> <commit>". A version may begin with v and end with a suffix of
// the distribution. An unknown one counts as 2, because later versions read that file.
func containerdMajor(line string) int {
	for _, field := range strings.Fields(line) {
		switch {
		case strings.HasPrefix(field, "2."), strings.HasPrefix(field, "v2."):
			return 2
		case strings.HasPrefix(field, "1."), strings.HasPrefix(field, "v1."):
			return 1
		}
	}
	return 2
}

// containerdConfig returns the file for containerd 1.x (version 2) or 2.x (version 3). found are the OCI runtimes of
// the machine, and ociRuntime is the one for pods without a RuntimeClass. 2.x sets up a pod's loopback device itself,
// which saves one program for each pod.
//
// Without CAP_SYS_RESOURCE the kernel refuses to lower an OOM score, and pods would not start. restrictOOM makes
// containerd raise lower scores to its own.
func containerdConfig(major int, restrictOOM bool, snapshotter, registries, ociRuntime string, found []string) string {
	if major == 1 {
		return fmt.Sprintf(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.opt"]
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = %t
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = %q
    default_runtime_name = %q
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %q
%s`, ContainerdSocket, localimage.Pause, restrictOOM, snapshotter, ociRuntime, cniBinDir, cniConfDir, registries,
			runtimeHandlers("io.containerd.grpc.v1.cri", found))
	}
	return fmt.Sprintf(`version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = %q
[plugins.'io.containerd.cri.v1.images']
  snapshotter = %q
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = %q
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = %q
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = %t
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = %q
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = [%q]
    conf_dir = %q
    use_internal_loopback = true
[plugins.'io.containerd.internal.v1.opt']
  path = "/var/lib/containerd/opt"
%s`, ContainerdSocket, snapshotter, localimage.Pause, registries, restrictOOM, ociRuntime, cniBinDir, cniConfDir,
		runtimeHandlers("io.containerd.cri.v1.runtime", found))
}

// leastMemory returns below how many KiB of available memory a node evicts pods: Kubernetes' 100 MiB above what the
// kernel keeps free. The kubelet counts as available what is free and what files have that were not used lately. The
// kernel does not let the first fall below what it keeps, so that a threshold near to that is never crossed: the
// machine takes its programs' own pages back, over and over, and no pod is evicted.
func leastMemory(kept int64) int64 { return (100<<20 + kept) >> 10 }

// hasSysResource reports whether oom_score_adj may be lowered (CAP_SYS_RESOURCE, bit 24 of the effective set, on the
// machine itself and not in a user namespace). Without that, runc cannot start a sandbox unless containerd leaves the
// score alone.
func hasSysResource() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0 &&
		!host.InUserNamespace()
}

// oomScore is the score for the out-of-memory killer of the processes that run a node: containers die before them.
// Where the kernel refuses a lower one, it is that of this process, and at least 0.
func oomScore() int {
	if hasSysResource() {
		return host.NodeOOMScore
	}
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return 0
	}
	score, err := strconv.Atoi(strings.TrimSpace(string(own)))
	if err != nil {
		return 0
	}
	return max(score, 0)
}

// waitFile waits until there is a file at path, or ctx ends. It runs as Process.Before on the goroutine of that
// process, and so delays no other one. Nothing but ctx bounds the wait.
func waitFile(ctx context.Context, path string) {
	host.Poll(ctx, 50*time.Millisecond, func() (bool, error) { // the process that needs the file reports the error
		_, err := os.Stat(path)
		return err == nil, nil
	})
}
