package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// spread is a web server on each of two nodes.
const spread = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      containers:
      - {name: web, image: "localhost/busybox:1.0", command: [httpd, -f, -p, "8080", -h, /etc]}
`

// machine is a network namespace that shares nothing with others but the network, and a user there.
type machine struct {
	t     *testing.T
	netns string
	env
}

func newMachine(t *testing.T, name, dir string) machine {
	t.Helper()
	m := machine{t, "e2e-" + name,
		env{bin: cluster.bin, data: filepath.Join(dir, name, "data"), home: filepath.Join(dir, name),
			kubeconfig: filepath.Join(dir, name, "config")}}
	m.host("ip", "netns", "add", m.netns)
	t.Cleanup(func() { m.host("ip", "netns", "del", m.netns) })
	m.host("ip", "-n", m.netns, "link", "set", "lo", "up")
	t.Cleanup(func() { m.bonsai("down") })
	return m
}

func (m machine) host(name string, args ...string) {
	m.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		m.t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

// wire gives the machine an end of a cable.
func (m machine) wire(link, address string) {
	m.t.Helper()
	m.host("ip", "link", "set", link, "netns", m.netns)
	m.host("ip", "-n", m.netns, "addr", "add", address+"/24", "dev", link)
	m.host("ip", "-n", m.netns, "link", "set", link, "up")
}

func (m machine) try(name string, args ...string) (string, error) {
	enter, err := exec.LookPath("nsenter")
	if err != nil {
		return "", err
	}
	return m.command(3*time.Minute, enter,
		append([]string{"--net=/run/netns/" + m.netns, filepath.Join(m.bin, name)}, args...)...)
}

func (m machine) bonsai(args ...string) string {
	m.t.Helper()
	return m.run("bonsai", append([]string{"--data-dir", m.data}, args...)...)
}

func (m machine) run(name string, args ...string) string {
	m.t.Helper()
	out, err := m.try(name, args...)
	if err != nil {
		m.t.Fatal(out, err)
	}
	return out
}

// kernel is what of a machine's network a node could leave behind.
func (m machine) kernel() string {
	m.t.Helper()
	var all []string
	for _, args := range [][]string{{"ip", "route"}, {"ip", "-br", "link"}, {"nft", "list", "tables"}} {
		out, err := exec.Command("ip", append([]string{"netns", "exec", m.netns}, args...)...).CombinedOutput()
		if err != nil {
			m.t.Fatal(args, string(out), err)
		}
		all = append(all, string(out))
	}
	return strings.Join(all, "\n")
}

// TestJoin: another machine joins with a token, and is a node as any: pods reach each other both ways by address and by
// Service, exec and logs come through; it takes part in add-ons that are switched on later; it survives stop and start;
// what it leaves behind is nothing.
func TestJoin(t *testing.T) {
	isLong(t)
	dir := t.TempDir()
	near, far := newMachine(t, "near", dir), newMachine(t, "far", dir)
	near.host("ip", "link", "add", "e2e-near", "type", "veth", "peer", "name", "e2e-far")
	near.wire("e2e-near", "192.0.2.1")
	far.wire("e2e-far", "192.0.2.2")
	before := far.kernel()

	near.bonsai("up", "--advertise-address", "192.0.2.1")
	line := strings.Fields(near.bonsai("token", "create", "--print-join-command"))
	if len(line) < 3 || line[0] != "bonsai" || line[1] != "join" {
		t.Fatal(line)
	}
	if out, err := far.try("bonsai",
		append([]string{"--data-dir", far.data, "join", line[2]}, "--token=abcdef.0123456789abcdef", "--wait=2s",
			line[5], line[6])...); err == nil {
		t.Fatal("joined with a token that nobody made: ", out)
	}
	far.bonsai(append(line[1:], "--node-name", "far", "--labels", "place=far")...)
	manifest := filepath.Join(dir, "spread.yaml")
	if err := os.WriteFile(manifest, []byte(spread), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"apply -f " + manifest,
		"expose deployment web --port=80 --target-port=8080",
		"rollout status deployment web " + bound(80),
	} {
		near.run("kubectl", strings.Fields(args)...)
	}
	pods := func() map[string]string { // addresses by node
		found := map[string]string{}
		for line := range strings.Lines(
			near.run("kubectl", "get", "pods", "-l", "app=web", "-o",
				`jsonpath={range .items[*]}{.spec.nodeName} {.status.podIP}{"\n"}{end}`)) {
			if node, address, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				found[node] = address
			}
		}
		return found
	}
	meet := func() {
		t.Helper()
		at := pods()
		if len(at) != 2 {
			t.Fatal(at)
		}
		for _, from := range []string{"n1", "far"} {
			name := near.run("kubectl", "get", "pods", "-l", "app=web", "--field-selector", "spec.nodeName="+from, "-o",
				"jsonpath={.items[0].metadata.name}")
			for _, url := range []string{"http://" + at["n1"] + ":8080/hostname",
				"http://" + at["far"] + ":8080/hostname", "http://web/hostname"} {
				waitFor(t, from+" reaches "+url, func() bool {
					out, err := near.try("kubectl", "exec", name, "--", "wget", "-qO-", url)
					return err == nil && strings.HasPrefix(out, "web-")
				})
			}
		}
	}
	meet()
	uid := near.run("kubectl", "get", "pods", "-l", "app=web", "--field-selector", "spec.nodeName=far", "-o",
		"jsonpath={.items[0].metadata.uid}")
	waitFor(t, "the trace of a pod there has the spans of its kubelet", func() bool {
		out, err := near.try("kubectl", "get", "traces", uid, "-o",
			"jsonpath={range .spans[*]}{.component}@{.instance} {end}")
		return err == nil && strings.Contains(out, "kubelet@far ") && strings.Contains(out, "kube-apiserver@")
	})
	if out := far.bonsai("status"); !strings.Contains(out, "far") || strings.Contains(out, "n1") {
		t.Errorf("status: %s", out)
	}
	// An add-on that is switched on after the join runs on the joined machine, whose other pods go on.
	near.run("kubectl", "cordon", "n1")
	near.bonsai("up", "--addons", "metrics-server")
	waitFor(t, "the add-on's image on the joined machine", func() bool {
		out, err := near.try("kubectl", "-n", "kube-system", "get", "pods", "-l", "k8s-app=metrics-server", "-o",
			"jsonpath={.items[*].spec.nodeName} {.items[*].status.containerStatuses[*].imageID}")
		return err == nil && strings.HasPrefix(out, "far ") && strings.Contains(out, "sha256:")
	})
	if out := near.run("kubectl", "get", "pods", "-l", "app=web", "-o",
		"jsonpath={.items[*].status.containerStatuses[*].restartCount}"); out != "0 0" {
		t.Errorf("pods started again: %q", out)
	}
	near.run("kubectl", "uncordon", "n1")
	far.bonsai("stop")
	if after := far.kernel(); after != before {
		t.Errorf("stop left behind:\n%s\nbefore:\n%s", after, before)
	}
	far.bonsai("start")
	near.run("kubectl", "wait", "--for=condition=Ready", "pod", "-l", "app=web", bound(80))
	meet()
	far.bonsai("down")
	if after := far.kernel(); after != before {
		t.Errorf("down left behind:\n%s\nbefore:\n%s", after, before)
	}
}
