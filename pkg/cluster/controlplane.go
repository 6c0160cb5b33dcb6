package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"bonsai/pkg/cluster/supervise"
)

// loopback is where a control plane listens on its host, except for the API server. hostRules lead its port there, too.
const loopback = "127.0.0.1"

// onLoopback lists the ports that must be free there, the API server's first.
func (p Ports) onLoopback() []int {
	return []int{p.API, p.EtcdClient, p.EtcdPeer, p.ControllerManager, p.Scheduler}
}

// listening lists where on the host the cluster listens for TCP, as far as it is decided: the control plane, also for other machines,
// or on a machine that has joined the node, then the published ports.
func (c Config) listening() []netip.AddrPort {
	var all []netip.AddrPort
	if c.Joined != nil {
		for _, port := range nodePorts {
			all = append(all, netip.AddrPortFrom(netip.IPv4Unspecified(), port))
		}
	}
	for i, port := range c.Ports.onLoopback() {
		at := netip.MustParseAddr(loopback)
		if i == 0 {
			at = c.loopback()
		}
		if port != 0 {
			all = append(all, netip.AddrPortFrom(at, uint16(port)))
		}
	}
	if c.joinable() && c.Ports.API != 0 {
		all = append(all, c.advertised().listens())
	}
	return append(all, c.published(false)...)
}

// published lists where the published ports of TCP or of UDP are.
func (c Config) published(udp bool) []netip.AddrPort {
	var all []netip.AddrPort
	for _, m := range c.mappings() {
		if m.UDP == udp {
			all = append(all, m.listens())
		}
	}
	return all
}

// steps has a component log what it does for each object (package trace): in a cluster of one machine a story is worth a record.
const steps = "--v=2"

// controlPlane lists the processes of the control planes in layers, the order in which they start; each process retries until what it
// needs is there. A layer is ended when those after it have: leaders give their leases back to servers that are still there, and these
// write to an etcd that is. self is this program.
func (c Config) controlPlane(self string) (layers [3][]supervise.Process) {
	stores, servers, clients := &layers[0], &layers[1], &layers[2]
	l := c.layout()
	row := func(m member, component string, argv []string) supervise.Process {
		argv = append(append(argv, gatesFlag(component, c.FeatureGates)...), userFlags(c.ComponentFlags[component])...)
		return m.inside(self, supervise.Process{Name: m.of(component), Log: l.log(m.of(component)), Argv: argv})
	}
	if c.highlyAvailable() {
		*servers = append(*servers, supervise.Process{Name: balancerName, Log: l.log(balancerName), Argv: c.balancerArgs(self)})
	}
	for _, m := range c.members() {
		*stores = append(*stores, row(m, "etcd", c.etcdArgs(m)))
		server := row(m, "kube-apiserver", c.apiserverArgs(m))
		if networks := c.localNetworks(); len(networks) > 0 {
			server.Env = append(server.Env, "BONSAI_LOCAL_NETWORKS="+strings.Join(networks, ":"))
		}
		*servers = append(*servers, server)
		*clients = append(*clients, row(m, "kube-controller-manager", c.controllerManagerArgs(m)), row(m, "kube-scheduler", c.schedulerArgs(m)))
	}
	return layers
}

// balancerName is the name of the process before several API servers.
const balancerName = "balancer"

func (c Config) balancerArgs(self string) []string {
	args := []string{self, "balance", "--listen=" + netip.AddrPortFrom(c.HostIP(), uint16(c.Ports.API)).String(), "--certificate-authority=" + c.layout().pki("ca.crt")}
	for _, m := range c.members() {
		args = append(args, "--backend="+netip.AddrPortFrom(m.address(), uint16(c.Ports.API)).String())
	}
	return args
}

// election has several members elect a leader. The supervisor never runs two of the only one, so that need not wait 15 s for a killed
// one's lease to end.
func (c Config) election() string { return "--leader-elect=" + strconv.FormatBool(c.highlyAvailable()) }

func (c Config) controllerManagerArgs(m member) []string {
	l := c.layout()
	kubeconfig := l.kubeconfig(m.of("controller-manager"))
	args := []string{c.bin("kube-controller-manager"),
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + m.local, "--secure-port=" + strconv.Itoa(c.Ports.ControllerManager),
		c.election(),
		"--root-ca-file=" + l.pki("ca.crt"),
		"--cluster-signing-cert-file=" + l.pki("ca.crt"),
		"--cluster-signing-key-file=" + l.pki("ca.key"),
		"--service-account-private-key-file=" + l.pki("sa.key"),
		"--use-service-account-credentials=true",
		"--allocate-node-cidrs=true",
		"--cluster-cidr=" + joined(c.PodSubnets()),
		"--service-cluster-ip-range=" + joined(c.ServiceSubnets()),
		"--cloud-config=" + l.cloudConfig(),
	}
	if flag := c.maskFlag(); flag != "" {
		args = append(args, flag)
	}
	if c.joinable() {
		args = append(args, "--controllers=*,bootstrap-signer-controller,token-cleaner-controller")
	}
	return args
}

func (c Config) schedulerArgs(m member) []string {
	kubeconfig := c.layout().kubeconfig(m.of("scheduler"))
	return []string{c.bin("kube-scheduler"),
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + m.local, "--secure-port=" + strconv.Itoa(c.Ports.Scheduler),
		c.election(),
		steps,
	}
}

// etcdArgs: each member's API server alone uses its etcd, so clients need not reach it from elsewhere; the other members' etcds do.
func (c Config) etcdArgs(m member) []string {
	l := c.layout()
	nameOf, peerOf := func(member) string { return "bonsai" }, func(m member) string { return "https://" + m.local + ":" + strconv.Itoa(c.Ports.EtcdPeer) }
	// One member is its own majority: it need not wait a second for others to speak. Five ticks are the least that etcd allows.
	// Each tick of an idle etcd costs CPU, though it beats for nobody; but a start waits for one to five.
	timing := []string{"--heartbeat-interval=50", "--election-timeout=250"}
	if c.highlyAvailable() {
		nameOf, timing = member.name, []string{"--heartbeat-interval=100", "--election-timeout=1000"}
		peerOf = func(m member) string {
			return "https://" + netip.AddrPortFrom(m.address(), uint16(c.Ports.EtcdPeer)).String()
		}
	}
	var all []string
	for _, other := range c.members() {
		all = append(all, nameOf(other)+"="+peerOf(other))
	}
	client, peer := "https://"+m.local+":"+strconv.Itoa(c.Ports.EtcdClient), peerOf(m)
	return append([]string{c.bin("etcd"),
		"--name=" + nameOf(m), "--data-dir=" + l.etcd(m), "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=" + strings.Join(all, ","),
		"--client-cert-auth", "--trusted-ca-file=" + l.pki("etcd-ca.crt"), "--cert-file=" + l.pki(m.of("etcd")+".crt"), "--key-file=" + l.pki(m.of("etcd")+".key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + l.pki("etcd-ca.crt"), "--peer-cert-file=" + l.pki(m.of("etcd")+".crt"), "--peer-key-file=" + l.pki(m.of("etcd")+".key"),
	}, timing...)
}

func (c Config) apiserverArgs(m member) []string {
	l := c.layout()
	pair := func(certificate, cert, key string) []string {
		return []string{cert + "=" + l.pki(m.of(certificate)+".crt"), key + "=" + l.pki(m.of(certificate)+".key")}
	}
	var joining []string
	if c.joinable() {
		joining = []string{"--enable-bootstrap-token-auth=true"}
	}
	return slices.Concat([]string{c.bin("kube-apiserver"),
		fmt.Sprintf("--etcd-servers=https://%s:%d", m.local, c.Ports.EtcdClient),
		"--etcd-cafile=" + l.pki("etcd-ca.crt"),
		"--bind-address=" + m.address().String(), "--advertise-address=" + m.address().String(), "--secure-port=" + strconv.Itoa(c.Ports.API),
		"--client-ca-file=" + l.pki("ca.crt"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-cluster-ip-range=" + joined(c.ServiceSubnets()),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + l.pki("sa.pub"), "--service-account-signing-key-file=" + l.pki("sa.key"),
		"--kubelet-certificate-authority=" + l.pki("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + l.pki("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--enable-aggregator-routing=true", "--allow-privileged=true", steps,
	},
		joining, pair("apiserver", "--tls-cert-file", "--tls-private-key-file"), pair("apiserver-etcd-client", "--etcd-certfile", "--etcd-keyfile"),
		pair("apiserver-kubelet-client", "--kubelet-client-certificate", "--kubelet-client-key"), pair("front-proxy-client", "--proxy-client-cert-file", "--proxy-client-key-file"))
}
