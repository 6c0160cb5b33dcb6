package vm

import (
	"strings"
	"testing"
)

// TestMachine is the life of a cluster on a machine that somebody just installed: nothing is loaded for it, systemd
// owns the cgroups, AppArmor is on. It comes back from whatever ends, and loses nothing when the power is cut.
func TestMachine(t *testing.T) {
	m := newMachine(t)
	if loaded := must(t, m, "lsmod"); strings.Contains(loaded, "br_netfilter") {
		t.Fatal("br_netfilter is loaded: a machine without Docker has not")
	}
	must(t, m, "bonsai up --name try --nodes 1 && "+makeWeb+" && "+allRun)

	t.Run("containers are confined", func(t *testing.T) {
		// noPodTwice does not count this pod.
		must(t, m, `kubectl run confined --image=localhost/busybox:1.0 --overrides='{"spec":{"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}}}' -- sleep 2000000`)
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
	t.Run("the session that started it ends", func(t *testing.T) {
		before := must(t, m, components)
		session := must(t, m, "loginctl show-session -p Id --value ${XDG_SESSION_ID:?}")
		m.ssh.hangUp()
		eventually(t, m, "loginctl show-session -p State "+session+" 2>/dev/null | grep -v closing || echo ended", "ended")
		must(t, m, allRun)
		noPodTwice(t, m)
		if after := must(t, m, components); after != before {
			t.Errorf("processes before: %s, after: %s", before, after)
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
		must(t, m, unlikeSnapshot)
		must(t, m, "bonsai snapshot restore one --name try && "+allRun)
		likeSnapshot(t, m)
		noPodTwice(t, m)
		must(t, m, "bonsai stop --name try")
	})
	if t.Failed() {
		return
	}
	t.Run("service", func(t *testing.T) {
		must(t, m, "systemctl enable --now "+unit)
		eventually(t, m, isReady, nodesReady)
		must(t, m, "kill -9 $(systemctl show -p MainPID --value "+unit+")")
		eventually(t, m, "systemctl show -p NRestarts "+unit, "NRestarts=1")
		eventually(t, m, isReady, nodesReady)
		must(t, m, "systemctl stop "+unit)
		if state := must(t, m, "systemctl show -p ActiveState -p Result "+unit+
			"; pgrep -a bonsai; find /sys/fs/cgroup -name 'bonsai-*'"); state !=
			"Result=success\nActiveState=inactive" {
			t.Errorf("stopped: %s", state)
		}
		must(t, m, "systemctl start "+unit)
	})
	for name, end := range map[string]func(*testing.T){
		"reboot":    func(t *testing.T) { reboot(t, m) },
		"power cut": func(t *testing.T) { cutPower(t, m); start(t, m) },
	} {
		t.Run(name, func(t *testing.T) {
			back(t, m)
			before := must(t, m, objects)
			end(t)
			back(t, m)
			noPodTwice(t, m)
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
	contains(t, must(t, m, "bonsai up --name try 2>&1 || echo refused"), "kernel module br_netfilter is not loaded",
		"run: modprobe br_netfilter", "refused")
	if made := must(t, m, "ls -d "+clusters+"/try 2>/dev/null; ip link show type veth; ls /run/netns 2>/dev/null; true"); made != "" {
		t.Errorf("made: %s", made)
	}
}
