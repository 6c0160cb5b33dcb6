package cluster

import (
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/cluster/controlplane"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

func threeControlPlanes() plan.Config {
	c := plan.Default("/data", "/bin")
	c.ControlPlanes = 3
	return c
}

// everyProcess are those of all layers.
func everyProcess(c plan.Config) []supervise.Process {
	layers := controlplane.Processes(c, "/bin/bonsai")
	return slices.Concat(layers[:]...)
}

// flag returns the value of a flag of p, "" if it is not given.
func flag(p supervise.Process, name string) string {
	for _, arg := range p.Argv {
		if value, is := strings.CutPrefix(arg, "--"+name+"="); is {
			return value
		}
	}
	return ""
}

// TestSeveralControlPlanes: each member has everything once, in its own namespaces, with certificates that no other
// has; its etcd takes clients from nowhere else, and its peers by TLS; those of which one leads elect it.
func TestSeveralControlPlanes(t *testing.T) {
	t.Parallel()
	c := threeControlPlanes()
	layers := controlplane.Processes(c, "/bin/bonsai")
	stores, servers, clients := layers[0], layers[1], layers[2]
	var names []string
	files := map[string]string{}
	for _, p := range everyProcess(c) {
		names = append(names, p.Name)
		if p.Name == controlplane.BalancerName {
			continue
		}
		component, member := p.Name[:strings.LastIndex(p.Name, "-")], p.Name[strings.LastIndex(p.Name, "-")+1:]
		if want := []string{"/bin/bonsai", "member-enter", c.Mark() + "-" + member, member, "--",
			"/bin/" + component}; !slices.Equal(p.Argv[:6], want) {
			t.Errorf("%s is started by %q, want %q", p.Name, p.Argv[:6], want)
		}
		if p.Attr.Cloneflags == 0 || p.Started == nil || p.Log != c.Layout().Log(p.Name) {
			t.Errorf("%s has no host's name, no line to the supervisor, or another's log", p.Name)
		}
		for _, f := range []string{"key-file", "peer-key-file", "tls-private-key-file", "etcd-keyfile",
			"kubelet-client-key", "proxy-client-key-file", "kubeconfig", "data-dir"} {
			file := flag(p, f)
			if other, taken := files[file]; file != "" && taken && other != p.Name {
				t.Errorf("%s and %s both have %s", p.Name, other, file)
			}
			files[file] = p.Name
		}
	}
	want := []string{"etcd-cp1", "etcd-cp2", "etcd-cp3", "balancer", "kube-apiserver-cp1", "kube-apiserver-cp2",
		"kube-apiserver-cp3"}
	for _, m := range []string{"cp1", "cp2", "cp3"} {
		want = append(want, "kube-controller-manager-"+m, "kube-scheduler-"+m)
	}
	if !slices.Equal(names, want) {
		t.Errorf("processes %v, want %v", names, want)
	}
	for got, want := range map[string]string{
		flag(stores[1], "listen-client-urls"): "https://127.0.0.1:2379",
		flag(stores[1], "listen-peer-urls"):   "https://10.77.0.3:2380",
		flag(stores[1], "initial-cluster"):    "cp1=https://10.77.0.2:2380,cp2=https://10.77.0.3:2380,cp3=https://10.77.0.4:2380",
		flag(servers[2], "bind-address"):      "10.77.0.3",
		flag(servers[2], "advertise-address"): "10.77.0.3",
		flag(servers[2], "etcd-servers"):      "https://127.0.0.1:2379",
		servers[2].Env[0]: strings.ReplaceAll(
			"BONSAI_LOCAL_NETWORKS=/run/netns/M-host:/run/netns/M-cp1:/run/netns/M-cp2:/run/netns/M-cp3", "M",
			c.Mark()),
		flag(clients[2], "leader-elect"): "true",
		flag(clients[3], "leader-elect"): "true",
		flag(servers[0], "listen"):       "10.77.0.1:6443",
		strings.Join(servers[0].Argv[4:],
			" "): "--backend=10.77.0.2:6443 --backend=10.77.0.3:6443 --backend=10.77.0.4:6443",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestOnlyControlPlane: the only one is as before there could be several: on the host, in the places that it had.
func TestOnlyControlPlane(t *testing.T) {
	t.Parallel()
	c := plan.Default("/data", "/bin")
	layers := controlplane.Processes(c, "/bin/bonsai")
	stores, servers, clients := layers[0], layers[1], layers[2]
	for got, want := range map[string]string{
		stores[0].Name:                      "etcd",
		stores[0].Argv[0]:                   "/bin/etcd",
		flag(stores[0], "data-dir"):         "/data/etcd",
		flag(stores[0], "key-file"):         "/data/pki/etcd.key",
		servers[0].Name:                     "kube-apiserver",
		flag(servers[0], "bind-address"):    "10.77.0.1",
		flag(clients[0], "leader-elect"):    "false",
		flag(clients[1], "kubeconfig"):      "/data/kubeconfig/scheduler.conf",
		flag(stores[0], "election-timeout"): "250",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if len(stores) != 1 || len(servers) != 1 || len(clients) != 2 {
		t.Errorf("%d, %d and %d processes", len(stores), len(servers), len(clients))
	}
}

// TestCertificatesOfMembers: the certificate of each API server is for its own address and for the balancer's, that of
// each etcd for its own.
func TestCertificatesOfMembers(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range pki.Certificates(threeControlPlanes()) {
		if seen[row.Name] {
			t.Errorf("%s is there twice", row.Name)
		}
		seen[row.Name] = true
		var ips []string
		for _, ip := range row.IPs {
			ips = append(ips, ip.String())
		}
		switch row.Name {
		case "apiserver-cp2":
			if got := strings.Join(ips, " "); got != "10.77.0.3 127.0.0.1 ::1 10.96.0.1 10.77.0.1" {
				t.Errorf("%s is for %s", row.Name, got)
			}
		case "etcd-cp3":
			if got := strings.Join(ips, " "); got != "10.77.0.4 127.0.0.1" {
				t.Errorf("%s is for %s", row.Name, got)
			}
		}
	}
	for _, name := range []string{"apiserver-cp2", "etcd-cp3", "apiserver-etcd-client-cp1",
		"apiserver-kubelet-client-cp1", "front-proxy-client-cp1", "controller-manager-cp3", "scheduler-cp3", "admin"} {
		if !seen[name] {
			t.Errorf("there is no certificate %s", name)
		}
	}
}

func TestControlPlanesRefused(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]bool{0: false, 1: true, 2: false, 3: true, 4: false} {
		c := plan.Default("/data", "/bin")
		c.ControlPlanes = n
		if err := c.Validate(); (err == nil) != want {
			t.Errorf("%d control planes: %v", n, err)
		}
	}
	c := threeControlPlanes()
	c.IPFamily = plan.IPv6
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--control-planes: several need IPv4") {
		t.Errorf("of IPv6 alone: %v", err)
	}
}
