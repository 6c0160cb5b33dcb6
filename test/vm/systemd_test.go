package vm

import (
	"strings"
	"testing"
)

// works asks for a Service by its name from a pod: DNS, the Service's rules, the network of pods. server makes that
// Service.
const (
	server = "kubectl create deployment server --image=localhost/busybox:1.0 --replicas=2 -- httpd -f -p 8080 -h /etc && " +
		"kubectl expose deployment server --port=80 --target-port=8080 && kubectl rollout status deployment/server --timeout=10m"
	works = "kubectl exec deployment/web -- wget -T 10 -qO- http://server/hostname && echo served"
)

// TestSystemd: what systemd, its services and an administrator do on any machine does not harm a cluster.
func TestSystemd(t *testing.T) {
	m := newCluster(t)
	must(t, m, server)
	eventually(t, m, works, "served")
	before := must(t, m, components)
	for _, c := range []struct{ name, script string }{
		{"networkd restarts", "systemctl restart systemd-networkd"},
		{"networkd reconfigures", "networkctl reload && networkctl reconfigure eth0"},
		{"udevd restarts", "systemctl restart systemd-udevd && udevadm trigger && udevadm settle"},
		{"manager executes itself", "systemctl daemon-reexec"},
		{"manager reloads", "systemctl daemon-reload"},
		{"journald is killed", "systemctl kill -s KILL systemd-journald"},
		{"journald rotates", "journalctl --rotate && journalctl --vacuum-size=1M"},
		{"dbus restarts", "systemctl restart dbus"},
		{"logind restarts", "systemctl restart systemd-logind"}, // Debian 13's needs it after D-Bus did
		{"nftables flushes all rules", "nft flush ruleset"},
		{"nftables service starts", "systemctl restart nftables"},
		{"sysctls are set again", "systemctl restart systemd-sysctl && sysctl -w net.ipv4.ip_forward=0"},
		{"temporary files are cleaned", "systemd-tmpfiles --clean --remove --exclude-prefix=/var/tmp"},
		{"AppArmor profiles are loaded again", "systemctl reload apparmor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			must(t, m, c.script)
			eventually(t, m, works, "served")
			back(t, m)
			newPods(t, m)
			// Nothing above needs it: all that is tried is on one node.
			eventually(t, m, "sysctl -n net.ipv4.ip_forward", "1")
		})
	}
	if after := must(t, m, components); after != before {
		t.Errorf("processes before: %s, after: %s", before, after)
	}
	if state := must(t, m, "systemctl --failed --plain --no-legend"); strings.Contains(state, "bonsai") {
		t.Errorf("systemd: %s", state)
	}
}

// TestOutOfMemory: the kernel ends each component for want of memory, and the cluster goes on.
func TestOutOfMemory(t *testing.T) {
	m := newCluster(t)
	must(t, m, server)
	components := []string{"kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy",
		"bonsai-network", "containerd"}
	for _, process := range components {
		t.Run(process, func(t *testing.T) {
			// The kernel kills the process that has the highest score. Of those with 1000, such as containers of pods
			// that request nothing, that is the largest.
			oldest := "pgrep -o -x " + process[:min(15, len(process))]
			pid := must(t, m, oldest)
			must(t, m, "echo 1000 >/proc/"+pid+"/oom_score_adj && echo f >/proc/sysrq-trigger")
			eventually(t, m, "kill -0 "+pid+" 2>/dev/null || echo gone", "gone")
			eventually(t, m, "now=$("+oldest+`) && [ "$now" != "`+pid+`" ] && echo runs again`, "runs again")
			back(t, m)
			newPods(t, m)
			eventually(t, m, works, "served")
		})
	}
	killed := must(t, m, "journalctl -k | grep 'Out of memory: Killed process' || true")
	if strings.Count(killed, "Killed process") < len(components) {
		t.Errorf("the kernel killed fewer than %d processes: %s", len(components), killed)
	}
}
