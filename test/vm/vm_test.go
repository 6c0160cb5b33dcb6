package vm

import (
	"context"
	"flag"
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
	accelerator = flag.String("accel", "tcg,thread=single", "qemu's -accel")
)

// patience is how long a machine may take for one thing. It is some 20 times slower than its host.
const patience = 15 * time.Minute

// newMachine starts a machine of the test's own, with no module loaded that a cluster needs.
func newMachine(t *testing.T) *Machine {
	t.Helper()
	if !*machines {
		t.Skip("SKIPPED: runs with -machines (make e2e-vm)")
	}
	for _, program := range []string{"qemu-system-x86_64", "debootstrap", "mkfs.ext4", "ssh"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v (apt-get install qemu-system-x86 debootstrap e2fsprogs openssh-client)", err)
		}
	}
	if os.Geteuid() != 0 {
		t.Fatal("must be root: debootstrap makes devices")
	}
	image, err := Build(t.Context(), *images, *release, *bin, "../../deploy/systemd/bonsai@.service")
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMachine(t.Context(), image, t.TempDir(), *accelerator)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if console, err := os.ReadFile(m.Console()); err == nil && t.Failed() {
			t.Logf("the console's last words:\n%s", console[max(0, len(console)-4000):])
		}
		if err := m.CutPower(); err != nil {
			t.Error(err)
		}
	})
	start(t, m)
	return m
}

func start(t *testing.T, m *Machine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := m.Start(ctx); err != nil {
		t.Fatal(err)
	}
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
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := until(ctx, 2*time.Second, script+" says "+want, func() (bool, string) {
		out, err := m.Run(ctx, script)
		return err == nil && strings.Contains(out, want), out
	})
	if err != nil {
		t.Fatal(err)
	}
}

const (
	// unit is the service of the cluster that the tests make.
	unit = "bonsai@try"
	// objects are what must survive: who they are, where they run, and which addresses they have.
	objects = `kubectl get deployments,pods,services,nodes,configmaps -o 'jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.spec.nodeName} {.status.podIP} {.spec.clusterIP} {.spec.podCIDR}{"\n"}{end}'`
	allRun  = `kubectl rollout status deployment/web --timeout=10m && kubectl wait --for=condition=Ready node --all --timeout=10m`
)

// TestMachine is the life of a cluster on a machine that somebody just installed: nothing is loaded for it, systemd
// owns the cgroups, AppArmor is on. It comes back from whatever ends, and loses nothing when the power is cut.
func TestMachine(t *testing.T) {
	m := newMachine(t)
	if loaded := must(t, m, "lsmod"); strings.Contains(loaded, "br_netfilter") {
		t.Fatal("br_netfilter is loaded: a machine without Docker has not")
	}
	must(t, m, "bonsai up --name try --nodes 1")
	must(t, m, "kubectl create deployment web --image=localhost/busybox:1.0 --replicas=2 -- sleep 1000000 && kubectl create configmap kept --from-literal=a=b && "+allRun)

	t.Run("containers are confined", func(t *testing.T) {
		must(t, m, `kubectl run confined --image=localhost/busybox:1.0 --overrides='{"spec":{"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}}}' -- sleep 1000000`)
		must(t, m, "kubectl wait --for=condition=Ready pod/confined --timeout=10m")
		for _, pod := range []string{"confined", "deployment/web"} {
			if profile := must(t, m,
				"kubectl exec "+pod+" -- cat /proc/self/attr/current"); profile !=
				"cri-containerd.apparmor.d (enforce)" {
				t.Errorf("%s: %s", pod, profile)
			}
		}
	})
	t.Run("the groups are in a scope", func(t *testing.T) {
		scopes := must(t, m, "systemctl list-units --plain --no-legend 'bonsai-*.scope'")
		if groups := must(t, m, "find /sys/fs/cgroup -name 'bonsai-????????'"); len(strings.Fields(groups)) != 1 ||
			!strings.Contains(groups, ".scope/") || !strings.Contains(scopes, "running") {
			t.Errorf("groups %s, scopes %s", groups, scopes)
		}
	})
	for _, program := range []string{"[b]onsai node-init", "[c]ontainerd --config", "/[k]ubelet --config"} {
		t.Run("killed: "+program, func(t *testing.T) {
			pid := must(t, m, "pgrep -of '"+program+"'")
			must(t, m, "kill -9 "+pid)
			eventually(t, m, "pgrep -of '"+program+"' | grep -vx "+pid+
				" >/dev/null && bonsai status --name try && echo up", "up")
			must(t, m, allRun)
		})
	}
	t.Run("stop, start, add, restore", func(t *testing.T) {
		must(t, m, "bonsai snapshot save one --name try")
		must(t, m, "bonsai stop --name try")
		if left := must(t, m, "find /sys/fs/cgroup -name 'bonsai-*'"); left != "" {
			t.Errorf("left: %s", left)
		}
		must(t, m, "bonsai start --name try && "+allRun)
		must(t, m, "bonsai node add --name try && bonsai node remove n2 --name try")
		must(t, m, "bonsai snapshot restore one --name try && "+allRun)
		must(t, m, "bonsai stop --name try")
	})
	if t.Failed() {
		return
	}
	t.Run("service", func(t *testing.T) {
		must(t, m, "systemctl enable --now "+unit)
		eventually(t, m, "systemctl status --no-pager "+unit, "1 of 1 nodes are Ready")
		must(t, m, "kill -9 $(systemctl show -p MainPID --value "+unit+")")
		eventually(t, m, "systemctl show -p NRestarts "+unit, "NRestarts=1")
		eventually(t, m, "systemctl status --no-pager "+unit, "1 of 1 nodes are Ready")
		must(t, m, "systemctl stop "+unit)
		if state := must(t, m, "systemctl show -p ActiveState -p Result "+unit+
			"; pgrep -a bonsai; find /sys/fs/cgroup -name 'bonsai-*'"); state !=
			"Result=success\nActiveState=inactive" {
			t.Errorf("stopped: %s", state)
		}
		must(t, m, "systemctl start "+unit)
	})
	for name, end := range map[string]func(*testing.T){
		"reboot": func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := m.Reboot(ctx); err != nil {
				t.Fatal(err)
			}
		},
		"power cut": func(t *testing.T) {
			if err := m.CutPower(); err != nil {
				t.Fatal(err)
			}
			start(t, m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, m, "systemctl status --no-pager "+unit, "1 of 1 nodes are Ready")
			must(t, m, allRun)
			before := must(t, m, objects)
			end(t)
			eventually(t, m, "systemctl status --no-pager "+unit, "1 of 1 nodes are Ready")
			must(t, m, allRun)
			if after := must(t, m, objects); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
	if state := must(t, m, "systemctl is-system-running --wait || systemctl --failed --plain"); state != "running" {
		t.Errorf("systemd: %s", state)
	}
}

// TestNoModule: what a kernel cannot do is refused by name before anything is made.
func TestNoModule(t *testing.T) {
	m := newMachine(t)
	must(t, m, "mv $(find /lib/modules -name 'br_netfilter.ko*') /root")
	out, err := m.Run(t.Context(), "bonsai up --name try")
	if err == nil || !strings.Contains(out, "kernel module br_netfilter is not loaded") ||
		!strings.Contains(out, "run: modprobe br_netfilter") {
		t.Errorf("%v: %s", err, out)
	}
	if made := must(t, m, "ls -d "+filepath.Join("/var/lib/bonsai-clusters/try")+
		" 2>/dev/null; ip link show type veth; ls /run/netns 2>/dev/null; true"); made != "" {
		t.Errorf("made: %s", made)
	}
}
