package vm

import (
	"context"
	"strings"
	"testing"
)

// anna runs a script as an ordinary user, in a session of hers as a login makes it.
func anna(t *testing.T, m *Machine, script string) string {
	t.Helper()
	return must(t, m, asAnna(script))
}

// asAnna is the script of root that runs a script as that user. Her PATH has the programs that install makes links to.
func asAnna(script string) string {
	return "ssh -q -i /root/anna -o StrictHostKeyChecking=accept-new anna@127.0.0.1 bash -s 2>&1 <<'END-OF-ANNA'\n" +
		"export PATH=$PATH:/usr/local/bin\n" + script + "\nEND-OF-ANNA"
}

const makeAnna = `useradd -m -s /bin/bash anna && ssh-keygen -q -t ed25519 -N '' -f /root/anna &&
	install -d -o anna -m 700 ~anna/.ssh && install -o anna -m 600 /root/anna.pub ~anna/.ssh/authorized_keys`

// TestRootless: bonsai check tells a user who is not root what the machine lacks. With that, the user's clusters work
// as root's do, reach nothing on the machine's loopback, survive a reboot, and leave nothing behind.
func TestRootless(t *testing.T) {
	m := newMachine(t)
	must(t, m, makeAnna)
	contains(t, anna(t, m, "bonsai check || echo refused"), "newuidmap, newgidmap", "pasta or slirp4netns is needed",
		"sudo apt-get install -y uidmap", "refused")
	contains(t, anna(t, m, "bonsai up || echo refused"), "sudo apt-get install -y passt slirp4netns", "refused")
	must(t, m, "apt-get install -y --no-download --no-install-recommends uidmap slirp4netns passt")
	// Something of the machine has the first port, and nobody has loaded a module.
	must(t, m, "systemd-run /media/bonsai/busybox httpd -f -p 127.0.0.1:6443 -h /etc")
	contains(t, anna(t, m, "bonsai up --nodes 1 --wait 15m"), "Ready in", "loginctl enable-linger anna")
	must(t, m, "loginctl enable-linger anna") // each script is a login, and a cluster would end with it
	contains(t, anna(t, m, "bonsai list"), "running", "https://127.0.0.1:6543", "/home/anna/.local/share/bonsai")
	anna(t, m, makeWeb+" && "+allRun)
	use(t, m)
	// The gateway, the machine's address and that of the relay for DNS, on the port that something has on loopback. The
	// same script reaches what it may, and the machine reaches what the pod may not.
	reach := func(addresses string) string {
		return anna(t, m, "kubectl exec deployment/web -- sh -c 'for a in "+addresses+"; do "+
			"timeout 10 wget -qO- http://$a/hostname && echo reached $a; done; true'")
	}
	contains(t, reach("site"), "reached site")
	contains(t, must(t, m, "/media/bonsai/busybox wget -qO- http://127.0.0.1:6443/hostname"), "machine")
	if out := reach("10.0.2.2:6443 10.0.2.15:6443 10.0.2.3:6443 169.254.1.1:6443"); strings.Contains(out, "reached") {
		t.Errorf("a pod reaches the machine's loopback: %s", out)
	}
	keeperDies(t, m)
	comesBack(t, m)
	anna(t, m, "systemctl --user disable bonsai@bonsai && bonsai down")
	eventually(t, m, processes+" || echo all ended", "all ended")
	if left := must(t, m, "find /sys/fs/cgroup -name 'bonsai-*'; ls -A /run/user/$(id -u anna) | grep bonsai; "+
		"find /home/anna/.local /home/anna/.kube -type f -not -path '*/cache/*'; "+
		"find / -xdev -uid +99999 -uid -200000; ip -o link | grep -v -e ' lo:' -e ' eth0:'; true"); left != "" {
		t.Errorf("the clusters left\n%s", left)
	}
}

// processes lists those of the user's clusters, or fails if there are none.
const processes = "pgrep -u anna -fa 'bonsai|pasta|slirp|containerd'"

// contains checks that an output has all the texts.
func contains(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("no %q in\n%s", text, out)
		}
	}
}

// use has pods, Services, DNS, published ports, images and nodes work for the user.
func use(t *testing.T, m *Machine) {
	t.Helper()
	anna(t, m, `kubectl create deployment site --image=localhost/busybox:1.0 -- httpd -f -p 8080 -h /etc &&
		kubectl expose deployment site --port 80 --target-port 8080 --type NodePort &&
		kubectl patch service site -p '{"spec":{"ports":[{"port":80,"targetPort":8080,"nodePort":30080}]}}' &&
		kubectl rollout status deployment/site --timeout=10m && bonsai up --port 8080:30080`)
	contains(t, anna(t, m, "kubectl exec deployment/web -- wget -qO- http://site.default.svc.cluster.local/hostname"),
		"site-")
	contains(t, anna(t, m, "/media/bonsai/busybox wget -qO- http://127.0.0.1:8080/hostname"), "site-")
	contains(t, must(t, m, "ss -tln"), "127.0.0.1:8080")
	contains(t, anna(t, m, "cp /media/bonsai/images/busybox.tar mine.tar && bonsai image load mine.tar && rm mine.tar"),
		"loaded localhost/busybox:1.0")
	contains(t, anna(t, m, "bonsai node add --wait 15m && bonsai status && bonsai logs kubelet --node n2 --tail 1"), "n2")
	contains(t, anna(t, m, "bonsai exec n2 -- hostname"), "n2")
	contains(t, anna(t, m, "bonsai pause && bonsai resume && bonsai stop && bonsai list"), "stopped")
	if left := must(t, m, processes+" || true"); left != "" {
		t.Errorf("a stopped cluster has %s", left)
	}
	anna(t, m, "bonsai start --wait 15m && bonsai node remove n2 && "+allRun)
	for _, command := range []string{"join 10.0.2.15:6443", "dns", "start --foreground",
		"up --name other --advertise-address 10.0.2.15"} {
		contains(t, anna(t, m, "bonsai "+command+" || echo refused"), "root", "refused")
	}
}

// keeperDies: a cluster whose keeper was killed ends by itself, and the next command starts another keeper.
func keeperDies(t *testing.T, m *Machine) {
	t.Helper()
	must(t, m, "pkill -KILL -u anna -f 'bonsai rootless-keep'")
	eventually(t, m, processes+" || echo all ended", "all ended")
	contains(t, anna(t, m, "bonsai list"), "stopped")
}

// comesBack: with a unit of the user's own systemd, and linger, a cluster is there again after a reboot.
func comesBack(t *testing.T, m *Machine) {
	t.Helper()
	within(t, func(ctx context.Context) error {
		return m.Copy(ctx, "../../deploy/systemd/user/bonsai@.service", "/etc/systemd/user")
	})
	anna(t, m, "systemctl --user daemon-reload && systemctl --user enable --now bonsai@bonsai && "+allRun)
	before := anna(t, m, objects)
	reboot(t, m)
	eventually(t, m, asAnna("systemctl --user is-active bonsai@bonsai"), "active")
	eventually(t, m, asAnna(allRun+" && echo all run"), "all run")
	noPodTwiceOf(t, m, asAnna)
	if after := anna(t, m, objects); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
