package vm

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	machines    = flag.Bool("machines", false, "run the tests, which start virtual machines")
	release     = flag.String("release", "bookworm", "the machines' release of Debian")
	images      = flag.String("dir", "/var/tmp/bonsai-vm", "where images are kept")
	bin         = flag.String("bin", "../../bin", "the programs to try")
	qemu        = flag.String("qemu", "qemu-system-x86_64", "the emulator, or a command that becomes it")
	accelerator = flag.String("accel", "tcg,thread=single", "qemu's -accel")
)

// patience is how long a machine may take for one thing. It is some 20 times slower than its host. No script waits as
// long by itself, so that what kubectl or Bonsai says about the wait is heard.
const patience = 25 * time.Minute

// newMachine starts a machine of the test's own, with Bonsai installed and no module loaded that a cluster needs.
// The configuration that change gets is complete.
func newMachine(t *testing.T, change ...func(*Config)) *Machine {
	t.Helper()
	m := unstarted(t, change...)
	start(t, m)
	install(t, m)
	return m
}

// unstarted returns a machine that has never had power.
func unstarted(t *testing.T, change ...func(*Config)) *Machine {
	t.Helper()
	if !*machines {
		t.Skip("SKIPPED: runs with -machines (make e2e-vm)")
	}
	for _, program := range []string{*qemu, "qemu-img", "debootstrap", "mkfs.ext4"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v (apt-get install qemu-system-x86 qemu-utils debootstrap e2fsprogs)", err)
		}
	}
	if os.Geteuid() != 0 {
		t.Fatal("must be root: debootstrap makes devices")
	}
	config := Config{Dir: t.TempDir(), QEMU: *qemu, Accelerator: *accelerator}
	var err error
	if config.Image, err = Build(t.Context(), *images, *release); err != nil {
		t.Fatal(err)
	}
	if config.Programs, err = MakePrograms(t.Context(), *bin, filepath.Join(config.Dir, "programs.raw")); err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(&config)
	}
	m, err := NewMachine(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(lastWords(m))
		}
		if err := m.CutPower(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// lastWords returns the ends of a machine's console and of its clusters' logs, for the report of a failed test. A
// machine that does not answer within two minutes has a console only.
func lastWords(m *Machine) string {
	console, noConsole := os.ReadFile(m.Console())
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // the test's own has ended
	defer cancel()
	logs, noLogs := m.Run(ctx, "date; uptime; find /var/lib/bonsai* /home -path '*/logs/*.log' -exec tail -v -n 30 {} +")
	return fmt.Sprintf("the last words of machine %d's console (%v):\n%s\nand of its clusters' logs (%v):\n%s",
		m.config.Number, noConsole, console[max(0, len(console)-4000):], noLogs, logs)
}

// within calls f with a context that ends when a machine has had time enough for one thing.
func within(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := f(ctx); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, m *Machine)  { t.Helper(); within(t, m.Start) }
func reboot(t *testing.T, m *Machine) { t.Helper(); within(t, m.Reboot) }

func cutPower(t *testing.T, m *Machine) {
	t.Helper()
	if err := m.CutPower(); err != nil {
		t.Fatal(err)
	}
}

// install puts the programs where install.sh puts them.
func install(t *testing.T, m *Machine) {
	t.Helper()
	must(t, m, "ln -sfn "+programsMount+" /usr/local/lib/bonsai && for p in bonsai kubectl; do ln -sfn "+
		"/usr/local/lib/bonsai/$p /usr/local/bin/$p; done")
	within(t, func(ctx context.Context) error {
		return m.Copy(ctx, "../../deploy/systemd/bonsai@.service", "/etc/systemd/system")
	})
	must(t, m, "systemctl daemon-reload")
}

// must runs a script that must succeed, and returns what it wrote.
func must(t *testing.T, m *Machine, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := m.Run(ctx, script)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

// eventually runs a script until it writes want.
func eventually(t *testing.T, m *Machine, script, want string) {
	t.Helper()
	within(t, func(ctx context.Context) error {
		return until(ctx, 2*time.Second, script+" says "+want, func() (bool, string) {
			out, err := m.Run(ctx, script)
			return err == nil && strings.Contains(out, want), fmt.Sprint(out, " ", err)
		})
	})
}

const (
	// unit is the service of the cluster that the tests make.
	unit = "bonsai@try"
	// isReady prints the state of that cluster's service, with nodesReady in it when it is up.
	isReady    = "systemctl status --no-pager " + unit
	nodesReady = "1 of 1 nodes are Ready"
	// objects are what must survive: who they are, where they run, and which addresses they have.
	objects = `kubectl get deployments,pods,services,nodes,configmaps -o 'jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.spec.nodeName} {.status.podIP} {.spec.clusterIP} {.spec.podCIDR}{"\n"}{end}'`
	allRun  = `kubectl rollout status deployment/web --timeout=10m && kubectl wait --for=condition=Ready node --all --timeout=10m`
	// components lists the process IDs of a cluster's components, without the runtime's shims, which are of pods.
	components = "pgrep -d ' ' -f '[k]ube-|[k]ubelet|[e]tcd|[c]ontainerd --config'"
	makeWeb    = "kubectl create deployment web --image=localhost/busybox:1.0 --replicas=2 -- sleep 1000000 && " +
		"kubectl create configmap kept --from-literal=a=b"
)

// newCluster starts a machine with a cluster of one node, a Deployment and a ConfigMap, as a service of systemd.
func newCluster(t *testing.T, change ...func(*Config)) *Machine {
	t.Helper()
	m := newMachine(t, change...)
	cluster(t, m)
	return m
}

// cluster makes that cluster on a machine.
func cluster(t *testing.T, m *Machine) {
	t.Helper()
	must(t, m, "bonsai up --name try --nodes 1 && "+makeWeb+" && "+allRun)
	must(t, m, "bonsai stop --name try && systemctl enable --now "+unit)
	back(t, m)
}

// newPods replaces the Deployment's pods, and returns when the new ones run, each once.
func newPods(t *testing.T, m *Machine) {
	t.Helper()
	must(t, m, "kubectl rollout restart deployment/web && "+allRun)
	noPodTwice(t, m)
}

// back returns when the cluster's service is up, all nodes are Ready and the Deployment is complete.
func back(t *testing.T, m *Machine) {
	t.Helper()
	eventually(t, m, isReady, nodesReady)
	// Its status is what it was while a component starts again.
	eventually(t, m, allRun+" && echo all run", "all run")
}
