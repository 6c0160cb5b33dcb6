package cluster

import (
	"fmt"
	"net/netip"
	"strconv"
)

// loopback is where the control plane listens on the host, except for the API server. hostRules lead its port there, too.
const loopback = "127.0.0.1"

// onLoopback lists the ports that must be free there, the API server's first.
func (p Ports) onLoopback() []int {
	return []int{p.API, p.EtcdClient, p.EtcdPeer, p.ControllerManager, p.Scheduler}
}

// listening lists where on the host the cluster listens for TCP, as far as it is decided: the control plane, then the published ports.
func (c Config) listening() []netip.AddrPort {
	var all []netip.AddrPort
	for i, port := range c.Ports.onLoopback() {
		at := netip.MustParseAddr(loopback)
		if i == 0 {
			at = c.loopback()
		}
		if port != 0 {
			all = append(all, netip.AddrPortFrom(at, uint16(port)))
		}
	}
	return append(all, c.published(false)...)
}

// published lists where the published ports of TCP or of UDP are.
func (c Config) published(udp bool) []netip.AddrPort {
	var all []netip.AddrPort
	for _, m := range c.PortMappings {
		if m.UDP == udp {
			all = append(all, m.listens())
		}
	}
	return all
}

// oneOfAKind: the supervisor never runs two of a component, so none has to wait 15 s for a killed one's lease to end.
const oneOfAKind = "--leader-elect=false"

// steps has a component log what it does for each object (package trace): in a cluster of one machine a story is worth a record.
const steps = "--v=2"

// controlPlane lists the host's processes in the order in which they start; each retries until what it needs is there.
func (c Config) controlPlane() []process {
	l := c.layout()
	rows := []process{
		{name: "etcd", argv: c.etcdArgs()},
		{name: "kube-apiserver", argv: c.apiserverArgs()},
		{name: "kube-controller-manager", argv: []string{c.bin("kube-controller-manager"),
			"--kubeconfig=" + l.kubeconfig("controller-manager"),
			"--authentication-kubeconfig=" + l.kubeconfig("controller-manager"),
			"--authorization-kubeconfig=" + l.kubeconfig("controller-manager"),
			"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(c.Ports.ControllerManager),
			oneOfAKind,
			"--root-ca-file=" + l.pki("ca.crt"),
			"--cluster-signing-cert-file=" + l.pki("ca.crt"),
			"--cluster-signing-key-file=" + l.pki("ca.key"),
			"--service-account-private-key-file=" + l.pki("sa.key"),
			"--use-service-account-credentials=true",
			"--allocate-node-cidrs=true",
			"--cluster-cidr=" + joined(c.PodSubnets()),
			"--service-cluster-ip-range=" + joined(c.ServiceSubnets()),
			"--cloud-config=" + l.cloudConfig(),
		}},
		{name: "kube-scheduler", argv: []string{c.bin("kube-scheduler"),
			"--kubeconfig=" + l.kubeconfig("scheduler"),
			"--authentication-kubeconfig=" + l.kubeconfig("scheduler"),
			"--authorization-kubeconfig=" + l.kubeconfig("scheduler"),
			"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(c.Ports.Scheduler),
			oneOfAKind,
			steps,
		}},
	}
	if flag := c.maskFlag(); flag != "" {
		rows[2].argv = append(rows[2].argv, flag)
	}
	for i := range rows {
		rows[i].log = l.log(rows[i].name)
		rows[i].argv = append(append(rows[i].argv, gatesFlag(rows[i].name, c.FeatureGates)...), userFlags(c.ComponentFlags[rows[i].name])...)
	}
	return rows
}

func (c Config) etcdArgs() []string {
	l := c.layout()
	client := "https://" + loopback + ":" + strconv.Itoa(c.Ports.EtcdClient)
	peer := "https://" + loopback + ":" + strconv.Itoa(c.Ports.EtcdPeer)
	return []string{c.bin("etcd"),
		"--name=bonsai", "--data-dir=" + l.etcd(), "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=bonsai=" + peer,
		"--client-cert-auth", "--trusted-ca-file=" + l.pki("etcd-ca.crt"), "--cert-file=" + l.pki("etcd.crt"), "--key-file=" + l.pki("etcd.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + l.pki("etcd-ca.crt"), "--peer-cert-file=" + l.pki("etcd.crt"), "--peer-key-file=" + l.pki("etcd.key"),
		// One member is its own majority: it need not wait a second for others to speak. Five ticks are the least that etcd allows,
		// and each tick of an idle etcd costs CPU.
		"--heartbeat-interval=20", "--election-timeout=100",
	}
}

func (c Config) apiserverArgs() []string {
	l := c.layout()
	return []string{c.bin("kube-apiserver"),
		fmt.Sprintf("--etcd-servers=https://%s:%d", loopback, c.Ports.EtcdClient),
		"--etcd-cafile=" + l.pki("etcd-ca.crt"), "--etcd-certfile=" + l.pki("apiserver-etcd-client.crt"), "--etcd-keyfile=" + l.pki("apiserver-etcd-client.key"),
		"--bind-address=" + c.HostIP().String(), "--advertise-address=" + c.HostIP().String(), "--secure-port=" + strconv.Itoa(c.Ports.API),
		"--tls-cert-file=" + l.pki("apiserver.crt"), "--tls-private-key-file=" + l.pki("apiserver.key"),
		"--client-ca-file=" + l.pki("ca.crt"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-cluster-ip-range=" + joined(c.ServiceSubnets()),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + l.pki("sa.pub"), "--service-account-signing-key-file=" + l.pki("sa.key"),
		"--kubelet-client-certificate=" + l.pki("apiserver-kubelet-client.crt"), "--kubelet-client-key=" + l.pki("apiserver-kubelet-client.key"),
		"--kubelet-certificate-authority=" + l.pki("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + l.pki("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + l.pki("front-proxy-client.crt"), "--proxy-client-key-file=" + l.pki("front-proxy-client.key"),
		"--enable-aggregator-routing=true", "--allow-privileged=true", steps,
	}
}
