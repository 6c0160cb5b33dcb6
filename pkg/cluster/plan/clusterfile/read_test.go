package clusterfile

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/programs"
	"bonsai/pkg/referencetest"
)

// undecided is a configuration with all addresses and ports open, as `bonsai up` begins with.
func undecided() plan.Config {
	c := plan.Default("/data", "/bin")
	c.NodeSubnet, c.PodSubnet, c.ServiceSubnet, c.Ports = netip.Prefix{}, netip.Prefix{}, netip.Prefix{}, plan.Ports{}
	return c
}

// TestDefaultFile: the file that `bonsai config print-default` prints sets what is the default anyway, and so does the
// shortest file.
func TestDefaultFile(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"default": Default,
		"shortest": "apiVersion: bonsai.io/v1alpha1\nkind: Cluster\n"} {
		c, err := Read([]byte(text), undecided())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(c.Nodes[0].Labels)+len(c.Nodes[0].Taints)+len(c.Nodes[0].Mounts) > 0 {
			t.Errorf("%s: %+v", name, c.Nodes)
		}
		// empty or not there is the same
		c.Nodes, c.FeatureGates, c.ComponentFlags = plan.NodesUpTo(len(c.Nodes)), nil, nil
		if want := undecided(); !reflect.DeepEqual(c, want) {
			t.Errorf("%s: %+v, not %+v", name, c, want)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	c, err := Read([]byte(`apiVersion: bonsai.io/v1alpha1
kind: Cluster
name: dev
nodes:
- labels: {disktype: ssd}
- taints: [{key: dedicated, value: db, effect: NoSchedule}]
  mounts: [{hostPath: /srv, nodePath: /var/lib/srv, readOnly: true}]
networking: {nodeSubnet: 10.90.0.0/24, podSubnet: 10.91.0.0/16, serviceSubnet: 10.92.0.0/16, apiPort: 7443, egress: false, advertiseAddress: 192.0.2.1}
registryMirrors: [{registry: docker.io, url: "http://10.90.0.1:5000"}]
ociRuntime: crun
encryptSecrets: false
programs: machine
featureGates: {MemoryQoS: true, PodDeletionCost: false}
componentFlags: {kube-apiserver: {v: "4", profiling: "false"}}
addons: {coredns: false, local-path: true, metrics-server: true}
portMappings: [{hostPort: 8080, nodePort: 30080}]
`), undecided())
	if err != nil {
		t.Fatal(err)
	}
	want := plan.Config{Name: "dev", DataDir: "/data", BinDir: "/bin", ControlPlanes: 1, Nodes: []plan.Node{
		{Number: 1, Labels: map[string]string{"disktype": "ssd"}},
		{Number: 2, Taints: []string{"dedicated=db:NoSchedule"},
			Mounts: []plan.Mount{{HostPath: "/srv", NodePath: "/var/lib/srv", ReadOnly: true}}}},
		Mirrors: []plan.Mirror{{Registry: "docker.io", URL: "http://10.90.0.1:5000"}}, OCIRuntime: "crun",
		Programs:         programs.Machine,
		Ports:            plan.Ports{API: 7443},
		AdvertiseAddress: netip.MustParseAddr("192.0.2.1"),
		PortMappings: []plan.PortMapping{
			{Address: netip.MustParseAddr("127.0.0.1"), HostPort: 8080, NodePort: 30080}},
		NodeSubnet: netip.MustParsePrefix("10.90.0.0/24"), PodSubnet: netip.MustParsePrefix("10.91.0.0/16"),
		ServiceSubnet:  netip.MustParsePrefix("10.92.0.0/16"),
		FeatureGates:   map[string]bool{"MemoryQoS": true, "PodDeletionCost": false},
		ComponentFlags: map[string]map[string]string{"kube-apiserver": {"v": "4", "profiling": "false"}},
		AddonChoices:   map[string]bool{"coredns": false, "metrics-server": true}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("%+v, not\n%+v", c, want)
	}
}

// TestFileProblems: the error has all problems at once, each with its line and field.
func TestFileProblems(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: bonsai.io/v1alpha1\nkind: Cluster\n"
	for text, want := range map[string][]string{
		"": {"line 1: apiVersion: must be bonsai.io/v1alpha1",
			"line 1: kind: must be Cluster"},
		"apiVersion: v2\nkind: Pod\n":        {"line 1: apiVersion", "line 2: kind"},
		head + "nodez: []\n":                 {`line 3: unknown field "nodez"`},
		head + "nodes:\n- label: {a: b}\n":   {`line 4: unknown field "label"`},
		head + "name: dev\nname: two\n":      {`line 4: mapping key "name" already defined at line 3`},
		head + "name: [a]\n":                 {"line 3: "},
		head + "name: My Cluster\n":          {`line 3: name: "My Cluster" must be`},
		head + "---\nkind: Cluster\n":        {"one document"},
		head + "\tname: a\n":                 {"line 2: found a tab character"},
		head + "networking: {ipFamily: x}\n": {"line 3: networking.ipFamily: must be ipv4, ipv6 or dual"},
		head + "networking:\n  podSubnet: 10.0.0.0/30\n  nodeSubnet: ten\n  apiPort: 70000\n": {
			"networking: podSubnet: must be an IPv4 network from /8 to /20", "line 5: networking.nodeSubnet",
			"line 6: networking.apiPort"},
		head + "networking: {podSubnet: 10.0.0.0/8, serviceSubnet: 10.1.0.0/16}\n": {
			"serviceSubnet: 10.1.0.0/16 overlaps podSubnet"},
		head + "nodes:\n- {}\n- taints:\n  - key: a b\n    effect: Never\n": {
			"line 6: nodes[1].taints[0]: ", "line 7: nodes[1].taints[0].effect: must be NoSchedule"},
		head + "nodes:\n- labels: {'a b': c}\n": {
			"line 4: nodes[0].labels.a b: "},
		head + "nodes:\n- mounts: [{hostPath: src, nodePath: /src}]\n": {
			`line 4: nodes[0].mounts[0]: hostPath: must be an absolute path`},
		head + "nodes: [" + strings.Repeat("{}, ", 9) +
			"{}]\n": {"line 3: nodes: there may be 9 nodes, not 10"},
		head + "registryMirrors: [{registry: docker.io, url: 'ftp://x'}]\n": {
			"line 3: registryMirrors[0]: must be an http or https URL"},
		head + "registryMirrors: [{registry: ../etc, url: 'http://x'}]\n": {
			"line 3: registryMirrors[0]: \"../etc\" is not a registry's host"},
		head + "featureGates:\n  NodeSwap: false\n  Nope: true\n  PodDeletionCost: false\n": {
			"line 4: featureGates.NodeSwap: cannot set feature gate NodeSwap to false, feature is locked to true",
			"line 5: featureGates.Nope: unrecognized feature gate: Nope"},
		head + "featureGates:\n  PodGroupPreemptionPolicy: true\n": {
			"line 4: featureGates: PodGroupPreemptionPolicy is enabled, but depends on features that are disabled: [GenericWorkload]"},
		head + "componentFlags:\n  apiserver: {v: '4'}\n  etcd: {--x: '1'}\n": {
			"line 4: componentFlags.apiserver: there is no such component",
			"line 5: componentFlags.etcd.--x: must be a flag without its dashes"},
		head + "portMappings:\n- {hostPort: 8080, nodePort: 0}\n": {
			"line 4: portMappings[0]: a port must be between 1 and 65535, not 0"},
		head + "portMappings: [{hostPort: 8080, nodePort: 30080, listenAddress: here}]\n": {
			"line 3: portMappings[0]: ParseAddr"},
		head + "programs: ours\n": {`line 3: programs: must be bundled or machine, not "ours"`},
		head + "ociRuntime: crunc\n": {
			`line 3: ociRuntime: must be runc or crun, not "crunc"`},
		head + "kubeconfigMode: rw\n": {`line 3: kubeconfigMode: "rw" is no octal mode`},
		head + "addons: {dashboard: true}\n": {
			"line 3: addons.dashboard: there is no such add-on"},
	} {
		_, err := Read([]byte(text), undecided())
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%q: no %q in: %v", text, w, err)
			}
		}
	}
}

// TestEncryptionLeftOut: an existing cluster stays as it is with a file of before there was the field.
func TestEncryptionLeftOut(t *testing.T) {
	t.Parallel()
	for _, is := range []bool{true, false} {
		c := undecided()
		c.EncryptSecrets = is
		c, err := Read([]byte("apiVersion: bonsai.io/v1alpha1\nkind: Cluster\n"), c)
		if err != nil || c.EncryptSecrets != is {
			t.Errorf("%t became %t (%v)", is, c.EncryptSecrets, err)
		}
	}
}

// TestFileSaysAll: what a file leaves out is the default, whatever the cluster has, except for what is kept. Every
// field of the file is tried, and every field of the configuration has one, but for those that no user chooses.
func TestFileSaysAll(t *testing.T) {
	t.Parallel()
	const (
		head   = "apiVersion: bonsai.io/v1alpha1\nkind: Cluster\n"
		node   = "nodes: [{labels: {a: b}, taints: [{key: a, value: b, effect: NoSchedule}], mounts: [{hostPath: /a, nodePath: /b, readOnly: true}]}]"
		port   = "portMappings: [{listenAddress: 192.0.2.1, hostPort: 8080, nodePort: 30080, protocol: UDP}]"
		mirror = "registryMirrors: [{registry: docker.io, url: 'http://192.0.2.1'}]"
	)
	read := func(text string, c plan.Config) plan.Config {
		c, err := Read([]byte(head+text), c)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		return c
	}
	fields := map[string]struct {
		text string
		kept bool // if the file leaves it out
	}{
		"name":                            {"name: dev", true},
		"controlPlanes":                   {"controlPlanes: 3", false},
		"nodes[].labels":                  {node, false},
		"nodes[].taints[].key":            {node, false},
		"nodes[].taints[].value":          {node, false},
		"nodes[].taints[].effect":         {node, false},
		"nodes[].mounts[].hostPath":       {node, false},
		"nodes[].mounts[].nodePath":       {node, false},
		"nodes[].mounts[].readOnly":       {node, false},
		"networking.ipFamily":             {"networking: {ipFamily: dual}", false},
		"networking.nodeSubnet":           {"networking: {nodeSubnet: 10.90.0.0/24}", true},
		"networking.podSubnet":            {"networking: {podSubnet: 10.91.0.0/16}", true},
		"networking.serviceSubnet":        {"networking: {serviceSubnet: 10.92.0.0/16}", true},
		"networking.apiPort":              {"networking: {apiPort: 7443}", true},
		"networking.egress":               {"networking: {egress: false}", false},
		"networking.advertiseAddress":     {"networking: {advertiseAddress: 192.0.2.1}", false},
		"networking.controlPlaneEndpoint": {"networking: {controlPlaneEndpoint: 'api.example.com:6443'}", false},
		"portMappings[].listenAddress":    {port, false},
		"portMappings[].hostPort":         {port, false},
		"portMappings[].nodePort":         {port, false},
		"portMappings[].protocol":         {port, false},
		"encryptSecrets":                  {"encryptSecrets: false", true},
		"traces":                          {"traces: false", false},
		"registryMirrors[].registry":      {mirror, false},
		"registryMirrors[].url":           {mirror, false},
		"ociRuntime":                      {"ociRuntime: crun", false},
		"programs":                        {"programs: machine", false},
		"featureGates":                    {"featureGates: {MemoryQoS: true}", false},
		"componentFlags":                  {"componentFlags: {etcd: {v: '4'}}", false},
		"addons":                          {"addons: {metrics-server: true}", false},
		"kubeconfigMode":                  {"kubeconfigMode: '0640'", false},
	}
	said := map[string]bool{"DataDir": true, "BinDir": true, "Extensible": true, "Peers": true, "Joined": true,
		"Containerized": true, "Addons": true} // no choices of a user, or none of a file
	for _, f := range referencetest.Fields(file{}, "yaml") {
		c, ok := fields[f.Path]
		if !ok && f.Path != "apiVersion" && f.Path != "kind" {
			t.Errorf("no case for the field %s: is it the default if the file leaves it out?", f.Path)
		}
		if !ok {
			continue
		}
		none := read("", undecided())
		with := read(c.text, undecided())
		changed := differing(none, with)
		if len(changed) == 0 {
			t.Errorf("%s has no effect", f.Path)
		}
		for _, name := range changed {
			said[name] = true
		}
		want := none
		if c.kept {
			want = with
		}
		if wrong := differing(read("", with), want); len(wrong) > 0 {
			t.Errorf("%s is left out: %s is wrong", f.Path, strings.Join(wrong, ", "))
		}
	}
	for i := range reflect.TypeFor[plan.Config]().NumField() {
		if name := reflect.TypeFor[plan.Config]().Field(i).Name; !said[name] {
			t.Errorf("no field of the file says %s, which an existing cluster therefore keeps", name)
		}
	}
}

// differing returns the names of the fields in which two configurations differ.
func differing(a, b plan.Config) (names []string) {
	for i := range reflect.TypeFor[plan.Config]().NumField() {
		if !reflect.DeepEqual(reflect.ValueOf(a).Field(i).Interface(), reflect.ValueOf(b).Field(i).Interface()) {
			names = append(names, reflect.TypeFor[plan.Config]().Field(i).Name)
		}
	}
	return names
}
