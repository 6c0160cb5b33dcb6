package containerized

import (
	"encoding/json"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/cluster/controlplane"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

const (
	dataVolume  = "/var/lib/bonsai" // where each container has its volume
	handOutName = "credentials"     // the service that fills the volumes
)

// composed returns the cluster that deploy/compose describes.
func composed(t *testing.T, dataDir string) plan.Config {
	t.Helper()
	c, err := New(dataDir, "/opt/bonsai/bin", netip.MustParsePrefix("10.77.63.0/24"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// service is what these tests read of one in a compose file.
type service struct {
	Command     []string
	Volumes     []string
	Ports       []string
	CapDrop     []string `yaml:"cap_drop"`
	CapAdd      []string `yaml:"cap_add"`
	SecurityOpt []string `yaml:"security_opt"`
	User        string
	Privileged  bool
	ReadOnly    bool `yaml:"read_only"`
	Networks    any
}

// composeServices reads deploy/compose/compose.yaml with the defaults of its variables.
func composeServices(t *testing.T) map[string]service {
	t.Helper()
	data, err := os.ReadFile("../../../deploy/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	data = regexp.MustCompile(`\$\{\w+:-([^}]*)\}`).ReplaceAll(data, []byte("$1"))
	var file struct{ Services map[string]service }
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return file.Services
}

// containers are the processes that the compose file runs: etcd is on all three control planes, everything else on
// two.
func containers(c plan.Config) []supervise.Process {
	layers := controlplane.Processes(c, "/bin/bonsai")
	return slices.DeleteFunc(slices.Concat(layers[:]...), func(p supervise.Process) bool {
		return strings.HasSuffix(p.Name, "-cp3") && !strings.HasPrefix(p.Name, "etcd")
	})
}

// program is the component's own command line: without what enters its namespaces or finds its routes, and without its
// directory.
func program(argv []string) []string {
	for i, arg := range argv {
		if base := filepath.Base(arg); base == "etcd" || strings.HasPrefix(base, "kube-") ||
			base == "bonsai" && len(argv) > i+1 && argv[i+1] == "balance" {
			return append([]string{base}, argv[i+1:]...)
		}
	}
	return argv
}

// TestComposeFlags: a component has the same flags in a container as in a cluster of processes, except where it
// listens and where others are.
func TestComposeFlags(t *testing.T) {
	t.Parallel()
	elsewhere := regexp.MustCompile(
		`^--(listen-client-urls|advertise-client-urls|listen-peer-urls|initial-advertise-peer-urls|initial-cluster|etcd-servers|bind-address|listen|backend|cloud-config)=`)
	common := func(argv []string) []string {
		return slices.DeleteFunc(slices.Clone(program(argv)), elsewhere.MatchString)
	}
	c, services := composed(t, dataVolume), composeServices(t)
	for _, p := range containers(c) {
		got, want := common(services[p.Name].Command), common(p.Argv)
		if !slices.Equal(got, want) {
			t.Errorf("%s\nhas  %q\nwant %q", p.Name, got, want)
		}
	}
}

// TestComposeAddresses: containers are where their certificates and the others' flags say.
func TestComposeAddresses(t *testing.T) {
	t.Parallel()
	c, services := composed(t, dataVolume), composeServices(t)
	want := map[string]string{controlplane.BalancerName: c.Networks().HostIP().String()}
	var backends, gateways []string
	for _, m := range c.Members()[:2] {
		want[m.Of("kube-apiserver")] = m.Address().String()
		backends = append(backends, "--backend="+m.Address().String()+":6443")
	}
	for _, n := range c.Nodes {
		want[n.Name()] = c.NodeIP(n).String()
		gateways = append(gateways, "--node="+c.NodeIP(n).String())
	}
	got := map[string]string{}
	for name, s := range services {
		networks, _ := s.Networks.(map[string]any)
		if own, ok := networks["cluster"].(map[string]any); ok {
			got[name], _ = own["ipv4_address"].(string)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
	for _, b := range backends {
		if !slices.Contains(services[controlplane.BalancerName].Command, b) {
			t.Errorf("the balancer has no %s", b)
		}
	}
	for _, m := range c.Members()[:2] {
		command := services[m.Of("kube-apiserver")].Command
		for _, arg := range append(gateways, "--pods="+c.PodSubnet.String(),
			"--advertise-address="+m.Address().String()) {
			if !slices.Contains(command, arg) {
				t.Errorf("%s has no %s", m.Of("kube-apiserver"), arg)
			}
		}
	}
}

// TestComposeWalls: each container has its own volume and no other, only one that ends before the rest begins has the
// authorities' keys, and only nodes are privileged; nothing listens on the machine but on its loopback.
func TestComposeWalls(t *testing.T) {
	t.Parallel()
	c, services := composed(t, dataVolume), composeServices(t)
	want := []string{plan.Administrator}
	for _, p := range containers(c) {
		want = append(want, p.Name)
	}
	for _, n := range c.Nodes {
		want = append(want, n.Name())
	}
	slices.Sort(want)
	for name, s := range services {
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, plan.Loopback+":") {
				t.Errorf("%s is published at %s", name, port)
			}
		}
		if s.Privileged != c.HasNode(name) {
			t.Errorf("%s: privileged %t", name, s.Privileged)
		}
		if c.HasNode(name) {
			continue
		}
		if !slices.Equal(s.CapDrop, []string{"ALL"}) || !s.ReadOnly ||
			!slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s keeps capabilities, may gain some, or may write its image", name)
		}
		if own := s.User == "65532:65532"; own != (len(s.CapAdd) == 0) || slices.Contains(s.CapAdd, "SYS_ADMIN") {
			t.Errorf("%s is the user %q with the capabilities %q", name, s.User, s.CapAdd)
		}
	}
	var given []string
	for _, v := range services[handOutName].Volumes[1:] {
		volume, to, _ := strings.Cut(v, ":")
		given = append(given, volume)
		if to != "/volumes/"+volume {
			t.Errorf("%s is handed out at %s", volume, to)
		}
	}
	if slices.Sort(given); !slices.Equal(given, want) {
		t.Errorf("handed out to %q, want %q", given, want)
	}
	if v := services[handOutName].Volumes[0]; v != "authorities:"+dataVolume {
		t.Errorf("the authorities are in %s", v)
	}
	for _, name := range want {
		if s := services[name]; len(s.Volumes) == 0 || s.Volumes[0] != name+":"+dataVolume ||
			len(s.Volumes) > 1 && name != plan.Administrator {
			t.Errorf("%s has the volumes %q", name, s.Volumes)
		}
	}
	if len(services) != len(want)+1 {
		t.Errorf("%d services, want %d and %s", len(services), len(want), handOutName)
	}
}

// TestHandOut: each container is given what it reads, as the user that it is, and nothing else; a second time the same.
func TestHandOut(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: files are given to other users, which needs root")
	}
	c, volumes := composed(t, t.TempDir()), t.TempDir()
	for _, name := range []string{"etcd-cp3", "kube-apiserver-cp1", "kube-controller-manager-cp2", "balancer", "n2",
		plan.Administrator} {
		if err := os.Mkdir(filepath.Join(volumes, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	stale := filepath.Join(volumes, "balancer", "pki", "ca.key")
	if err := host.WriteFile(stale, nil); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if err := HandOut(c, volumes, now); err != nil {
		t.Fatal(err)
	}
	identity := filepath.Join(volumes, "n2", "kubeconfig", "kubelet-n2.conf")
	first, err := os.Stat(identity)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		user  uint32
		files []string
	}{
		"etcd-cp3": {controlPlaneUser, []string{"pki/etcd-ca.crt", "pki/etcd-cp3.crt", "pki/etcd-cp3.key"}},
		"kube-apiserver-cp1": {controlPlaneUser,
			[]string{"encryption/config.yaml", "pki/apiserver-cp1.crt", "pki/apiserver-cp1.key", "pki/apiserver-etcd-client-cp1.crt",
				"pki/apiserver-etcd-client-cp1.key",
				"pki/apiserver-kubelet-client-cp1.crt", "pki/apiserver-kubelet-client-cp1.key", "pki/ca.crt",
				"pki/etcd-ca.crt", "pki/front-proxy-ca.crt",
				"pki/front-proxy-client-cp1.crt", "pki/front-proxy-client-cp1.key", "pki/sa.key", "pki/sa.pub"}},
		"kube-controller-manager-cp2": {controlPlaneUser,
			[]string{"kubeconfig/controller-manager-cp2.conf", "pki/ca.crt", "pki/ca.key", "pki/sa.key"}},
		"balancer": {controlPlaneUser, []string{"pki/ca.crt"}},
		"n2": {0, []string{"kubeconfig/kubelet-n2.conf", "kubeconfig/network-n2.conf", "kubeconfig/proxy-n2.conf",
			"nodes/n2/etc/node.json",
			"pki/ca.crt", "pki/kubelet-server-n2.crt", "pki/kubelet-server-n2.key"}},
		plan.Administrator: {0, []string{"cluster.json", "kubeconfig/admin.conf", "pki/ca.crt"}},
	} {
		var files []string
		err := filepath.WalkDir(filepath.Join(volumes, name), func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if owner := info.Sys().(*syscall.Stat_t); owner.Uid != want.user || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: user %d, mode %s", path, owner.Uid, info.Mode())
			}
			if !d.IsDir() {
				below, err := filepath.Rel(filepath.Join(volumes, name), path)
				files = append(files, below)
				return err
			}
			return nil
		})
		if err != nil || !slices.Equal(files, want.files) {
			t.Errorf("%s has %q, want %q (%v)", name, files, want.files, err)
		}
	}
	if err := HandOut(c, volumes, now); err != nil {
		t.Fatal(err)
	}
	if again, err := os.Stat(identity); err != nil || !os.SameFile(first, again) {
		t.Errorf("a node's identity was written again, and it may be reading (%v)", err)
	}
	now = now.Add(340 * 24 * time.Hour) // when a certificate of a year is renewed at a start
	if err := HandOut(c, volumes, now); err != nil {
		t.Fatal(err)
	}
	renewed, err := os.Stat(identity)
	if err != nil || os.SameFile(first, renewed) || renewed.Mode().Perm() != 0o600 {
		t.Errorf("an identity that is about to expire stays: %v (%v)", renewed, err)
	}
	if err := os.Mkdir(filepath.Join(volumes, "n4"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := HandOut(c, volumes, now); err == nil || !strings.Contains(err.Error(), "n4") {
		t.Errorf("a volume of nobody: %v", err)
	}
}

// TestGiveKubeconfig: the user's file leads to the machine's port, belongs to who owns the directory, and is for no one
// else.
func TestGiveKubeconfig(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: the file is given to another user, which needs root")
	}
	c, dir := composed(t, t.TempDir()), t.TempDir()
	if err := pki.Make(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := kubeconfig.WriteAll(c); err != nil {
		t.Fatal(err)
	}
	const user = 4711
	if err := os.Chown(dir, user, user); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "admin.conf")
	if err := giveKubeconfig(c, "https://127.0.0.1:7443", path); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil || config.Host != "https://127.0.0.1:7443" {
		t.Errorf("leads to %v (%v)", config, err)
	}
	inside, err := clientcmd.BuildConfigFromFlags("", c.Layout().Kubeconfig(plan.Administrator))
	if err != nil || inside.Host != "https://10.77.63.1:6443" {
		t.Errorf("inside, leads to %v (%v)", inside, err)
	}
	if info, err := os.Stat(path); err != nil || info.Sys().(*syscall.Stat_t).Uid != user ||
		info.Mode().Perm() != 0o600 {
		t.Errorf("%v (%v)", info, err)
	}
}

// TestNode: a node finds a DNS server that its pods reach too, and its rules let nothing of the cluster out.
func TestNode(t *testing.T) {
	t.Parallel()
	c := composed(t, dataVolume)
	n := node.Of(c, c.Nodes[1])
	if resolv, err := n.ResolvConf(); err != nil || string(resolv) != "nameserver 10.77.63.12\n" {
		t.Errorf("%q (%v)", resolv, err)
	}
	if len(n.Gateways) > 0 {
		t.Errorf("gateways %v: its engine gave it one", n.Gateways)
	}
	rules := edgeRules(&n)
	for _, rule := range []string{
		`oifname "eth0" ip saddr 10.244.0.0/16 ip daddr != { 10.244.0.0/16, 10.77.63.0/24 } masquerade`,
		`oifname "eth0" ip daddr 10.96.0.0/16 reject`,
	} {
		if !strings.Contains(rules, rule) {
			t.Errorf("no rule %s in\n%s", rule, rules)
		}
	}
	if _, err := New(dataVolume, "/bin", netip.MustParsePrefix("10.0.0.0/16")); err == nil {
		t.Error("a network of another size is taken")
	}
}

// TestFieldNames: the field that marks a containerized cluster keeps its name in the files of clusters and nodes, which
// other versions of this program read.
func TestFieldNames(t *testing.T) {
	t.Parallel()
	c := composed(t, dataVolume)
	for _, file := range []any{c, node.Of(c, c.Nodes[0])} {
		data, err := json.Marshal(file)
		if err != nil || !strings.Contains(string(data), `"Contained":true`) {
			t.Errorf("%s (%v)", data, err)
		}
	}
}
