package controlplane

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/componentflags"
	"bonsai/pkg/cluster/supervise"
)

// Processes lists the processes of the control planes in layers, the order in which they start; each process retries
// until what it needs is there. A layer ends after the layers behind it have ended: leaders give their leases back to
// servers that are still there, and those write to an etcd that is. self is this program.
func Processes(c plan.Config, self string) (layers [3][]supervise.Process) {
	stores, servers, clients := &layers[0], &layers[1], &layers[2]
	l := c.Layout()
	row := func(m plan.Member, component string, argv []string) supervise.Process {
		argv = componentflags.Add(append(argv, componentflags.Gates(component, c.FeatureGates)...),
			c.ComponentFlags[component])
		return inside(m, self, supervise.Process{Name: m.Of(component), Log: l.Log(m.Of(component)), Argv: argv})
	}
	if c.IsHighlyAvailable() {
		*servers = append(*servers, Balancer(c, self))
	}
	for _, m := range c.Members() {
		*stores = append(*stores, row(m, "etcd", etcdArgs(c, m)))
		server := row(m, "kube-apiserver", apiserverArgs(c, m))
		if networks := c.LocalNetworks(); len(networks) > 0 {
			server.Env = append(server.Env, "BONSAI_LOCAL_NETWORKS="+strings.Join(networks, ":"))
		}
		*servers = append(*servers, server)
		manager, scheduler := row(m, "kube-controller-manager", controllerManagerArgs(c, m)),
			row(m, "kube-scheduler", schedulerArgs(c, m))
		manager.Env, scheduler.Env = append(manager.Env, tracingEnv(c)...), append(scheduler.Env, tracingEnv(c)...)
		*clients = append(*clients, manager, scheduler)
	}
	return layers
}

// BalancerName is the name of the process before several API servers.
const BalancerName = "balancer"

// Balancer returns the process before several API servers, which is this program: those on this machine or, on a
// machine that has joined, those on all machines, which it reads from the file of WriteBackends. It trusts the
// cluster's authority alone when it asks whether an API server is ready.
func Balancer(c plan.Config, self string) supervise.Process {
	at := c.Networks().HostIP()
	if c.Joined != nil {
		at = c.Networks().Loopback()
	}
	args := []string{self, "balance", "--listen=" + netip.AddrPortFrom(at, uint16(c.Ports.API)).String(),
		"--certificate-authority=" + c.Layout().PKI("ca.crt")}
	if c.Joined != nil {
		args = append(args, "--backends-file="+c.Layout().Backends())
	} else {
		for _, m := range c.Members() {
			args = append(args, "--backend="+netip.AddrPortFrom(m.Address(), uint16(c.Ports.API)).String())
		}
	}
	return supervise.Process{Name: BalancerName, Log: c.Layout().Log(BalancerName), Argv: args}
}

// WriteBackends writes the API servers for the balancer of a machine that has joined, which follows them while it runs.
// The supervisor calls it at its start and whenever the cluster's control planes change.
func WriteBackends(c plan.Config) error {
	return host.WriteFile(c.Layout().Backends(), []byte(strings.Join(plan.Backends(c), "\n")+"\n"))
}

// mayHaveOthers reports whether there are other control planes, or may be at any time: other machines may bring some
// into a joinable cluster, whose processes do not start again for that.
func mayHaveOthers(c plan.Config) bool { return c.IsHighlyAvailable() || c.IsJoinable() }

// election returns the flag for leader election, which only several members need. The supervisor never runs two
// processes of a single member, so a new one need not wait 15 s for the lease of a killed one to expire.
func election(c plan.Config) string {
	return "--leader-elect=" + strconv.FormatBool(mayHaveOthers(c))
}

// controllerManagerArgs returns the controller manager's command line. Each controller has the permissions of its own
// service account, and not all of them together. The controllers for bootstrap tokens run only where other machines can
// join.
func controllerManagerArgs(c plan.Config, m plan.Member) []string {
	l := c.Layout()
	kubeconfig := l.Kubeconfig(m.Of("controller-manager"))
	args := []string{c.Bin("kube-controller-manager"),
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + m.Local, "--secure-port=" + strconv.Itoa(c.Ports.ControllerManager),
		election(c),
		"--root-ca-file=" + l.PKI("ca.crt"),
		"--cluster-signing-cert-file=" + l.PKI("ca.crt"),
		"--cluster-signing-key-file=" + l.PKI("ca.key"),
		"--service-account-private-key-file=" + l.PKI("sa.key"),
		"--use-service-account-credentials=true",
		"--allocate-node-cidrs=true",
		"--cluster-cidr=" + plan.CommaList(c.Networks().Pods()),
		"--service-cluster-ip-range=" + plan.CommaList(c.Networks().Services()),
		"--cloud-config=" + l.CloudConfig(),
	}
	if flag := c.Networks().MaskFlag(); flag != "" {
		args = append(args, flag)
	}
	if c.IsJoinable() {
		args = append(args, "--controllers=*,bootstrap-signer-controller,token-cleaner-controller")
	}
	return args
}

// schedulerArgs returns the scheduler's command line.
func schedulerArgs(c plan.Config, m plan.Member) []string {
	kubeconfig := c.Layout().Kubeconfig(m.Of("scheduler"))
	return []string{c.Bin("kube-scheduler"),
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + m.Local, "--secure-port=" + strconv.Itoa(c.Ports.Scheduler),
		election(c),
	}
}

// etcdArgs returns etcd's command line. Each member's API server alone uses its etcd, so clients need not reach it
// from elsewhere; the other members' etcds do.
//
// Clients and peers must show certificates of etcd's own authority, so no identity of the cluster opens etcd.
func etcdArgs(c plan.Config, m plan.Member) []string {
	l := c.Layout()
	nameOf, peerOf := func(plan.Member) string { return c.Etcd().Name },
		func(plan.Member) string { return c.Etcd().PeerURL }
	// A single member is its own majority, and need not wait a second for the others. etcd allows five ticks at least.
	// Each tick of an idle etcd costs CPU, even without a member to send a heartbeat to; but a start waits for one to
	// five of them.
	timing := []string{"--heartbeat-interval=50", "--election-timeout=250"}
	if mayHaveOthers(c) {
		timing = []string{"--heartbeat-interval=100", "--election-timeout=1000"}
	}
	if c.IsHighlyAvailable() {
		nameOf = plan.Member.Name
		peerOf = func(m plan.Member) string {
			return "https://" + netip.AddrPortFrom(m.Address(), uint16(c.Ports.EtcdPeer)).String()
		}
	}
	var all []string
	for _, other := range c.Members() {
		all = append(all, nameOf(other)+"="+peerOf(other))
	}
	client, peer := "https://"+m.Local+":"+strconv.Itoa(c.Ports.EtcdClient), peerOf(m)
	advertised, listens, initial := client, peer, []string{"--initial-cluster=" + strings.Join(all, ",")}
	// The etcds of other machines come through the doors that the supervisor opens (plan.Config.Etcd).
	if c.IsJoinable() && !c.IsHighlyAvailable() {
		advertised, listens = c.Etcd().ClientURL, "https://"+m.Local+":"+strconv.Itoa(c.Ports.EtcdPeer)
	}
	if c.Joined != nil {
		initial = []string{"--initial-cluster=" + c.Joined.InitialCluster, "--initial-cluster-state=existing"}
	}
	return slices.Concat([]string{c.Bin("etcd"),
		"--name=" + nameOf(m), "--data-dir=" + l.Etcd(m), "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + advertised,
		"--listen-peer-urls=" + listens, "--initial-advertise-peer-urls=" + peer,
	}, initial, []string{
		"--client-cert-auth", "--trusted-ca-file=" + l.PKI("etcd-ca.crt"), "--cert-file=" + l.PKI(m.Of("etcd")+".crt"),
		"--key-file=" + l.PKI(m.Of("etcd")+".key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + l.PKI("etcd-ca.crt"),
		"--peer-cert-file=" + l.PKI(m.Of("etcd")+".crt"), "--peer-key-file=" + l.PKI(m.Of("etcd")+".key"),
	}, timing)
}

// apiserverArgs returns the API server's command line. The identities that it presents, to etcd, to kubelets and to
// extension API servers, have a certificate each, so that none of them opens another door.
//
// The API server routes to endpoints itself (--enable-aggregator-routing), because the host has no kube-proxy that
// would translate a Service's address.
func apiserverArgs(c plan.Config, m plan.Member) []string {
	l := c.Layout()
	pair := func(certificate, cert, key string) []string {
		return []string{cert + "=" + l.PKI(m.Of(certificate)+".crt"), key + "=" + l.PKI(m.Of(certificate)+".key")}
	}
	var joining []string
	if c.IsJoinable() {
		joining = []string{"--enable-bootstrap-token-auth=true"}
	}
	var encryption []string
	if componentflags.EncryptsSecrets(c.EncryptSecrets, c.ComponentFlags) {
		// A rotation waits until the API servers have loaded its keys.
		encryption = []string{"--encryption-provider-config=" + l.Encryption(),
			"--encryption-provider-config-automatic-reload=true"}
	}
	return slices.Concat([]string{c.Bin("kube-apiserver"),
		fmt.Sprintf("--etcd-servers=https://%s:%d", m.Local, c.Ports.EtcdClient),
		"--etcd-cafile=" + l.PKI("etcd-ca.crt"),
		"--bind-address=" + m.Address().String(), "--advertise-address=" + m.Address().String(),
		"--secure-port=" + strconv.Itoa(c.Ports.API),
		"--client-ca-file=" + l.PKI("ca.crt"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-cluster-ip-range=" + plan.CommaList(c.Networks().Services()),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + l.PKI("sa.pub"), "--service-account-signing-key-file=" + l.PKI("sa.key"),
		"--kubelet-certificate-authority=" + l.PKI("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + l.PKI("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--enable-aggregator-routing=true", "--allow-privileged=true",
	},
		encryption, joining, tracing(c), pair("apiserver", "--tls-cert-file", "--tls-private-key-file"),
		pair("apiserver-etcd-client", "--etcd-certfile", "--etcd-keyfile"),
		pair("apiserver-kubelet-client", "--kubelet-client-certificate", "--kubelet-client-key"),
		pair("front-proxy-client", "--proxy-client-cert-file", "--proxy-client-key-file"))
}
