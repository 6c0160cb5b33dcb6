package e2e

import (
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"
)

// TestNeighbour: a machine on the same network that routes the cluster's addresses to this one reaches none of the
// cluster's doors, with egress and without, but what is published for it; the host reaches them all. Without egress, a
// pod reaches none of the host's services but the API server. At the end the host forwards as little as before.
func TestNeighbour(t *testing.T) {
	for _, egress := range []string{"true", "false"} {
		t.Run("egress="+egress, func(t *testing.T) {
			dir := t.TempDir()
			host, neighbour := newMachine(t, "host", dir), newMachine(t, "neighbour", dir)
			host.host("ip", "link", "add", "e2e-host", "type", "veth", "peer", "name", "e2e-neighbour")
			host.wire("e2e-host", "192.0.2.1")
			neighbour.wire("e2e-neighbour", "192.0.2.2")
			for _, subnet := range []string{"10.77.0.0/24", "10.244.0.0/16", "10.96.0.0/16"} {
				neighbour.host("ip", "-n", neighbour.netns, "route", "add", subnet, "via", "192.0.2.1")
			}
			forwards := func() string {
				out, err := exec.Command("ip", "netns", "exec", host.netns, "cat",
					"/proc/sys/net/ipv4/ip_forward").Output()
				if err != nil {
					t.Fatal(err)
				}
				return strings.TrimSpace(string(out))
			}
			host.host("ip", "netns", "exec", host.netns, "sh", "-c", "echo 0 >/proc/sys/net/ipv4/ip_forward")

			host.bonsai("up", "--egress="+egress, "--port", "192.0.2.1:8080:30080")
			host.run("kubectl", "create", "deployment", "web", "--image=localhost/busybox:1.0", "--", "httpd", "-f",
				"-p", "8080", "-h", "/etc")
			host.run("kubectl", "create", "service", "nodeport", "web", "--tcp=80:8080", "--node-port=30080")
			host.run("kubectl", "create", "service", "loadbalancer", "balanced", "--tcp=80:8080")
			host.run("kubectl", "set", "selector", "service", "balanced", "app=web")
			host.run("kubectl", "rollout", "status", "deployment", "web", bound(80))
			host.run("kubectl", "wait", "service/balanced", "--for=jsonpath={.status.loadBalancer.ingress}",
				bound(80))
			get := func(what ...string) string { return host.run("kubectl", slices.Concat([]string{"get"}, what)...) }
			pod := get("pods", "-l", "app=web", "-o", "jsonpath={.items[0].status.podIP}")
			balancer := get("service", "balanced", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")

			// Somebody removes what the host's rules are made of, and the cluster restores it.
			host.host("ip", "netns", "exec", host.netns, "sh", "-c", "nft flush ruleset; echo 0 >/proc/sys/net/ipv4/ip_forward")
			waitFor(t, "the host's packet rules are restored", func() bool {
				out, err := exec.Command("ip", "netns", "exec", host.netns, "nft", "list", "tables").Output()
				return err == nil && strings.Contains(string(out), "table ip bonsai-") &&
					(egress == "false") == (forwards() == "0")
			})

			// Controls: the host reaches what its neighbour must not, and the neighbour what is published.
			for _, door := range []string{"10.77.0.1:6443", "10.77.0.11:10250", "10.77.0.11:30080", pod + ":8080",
				balancer + ":80"} {
				waitFor(t, "the host reaches "+door, func() bool { return host.reaches(t, door) })
			}
			waitFor(t, "the neighbour reaches the published port", func() bool {
				return neighbour.reaches(t, "192.0.2.1:8080")
			})
			for _, door := range []string{
				"10.77.0.1:6443", "10.77.0.1:8080", "10.77.0.11:10250", "10.77.0.11:10256", "10.77.0.11:30080",
				pod + ":8080", balancer + ":80",
				get("service", "web", "-o", "jsonpath={.spec.clusterIP}") + ":80",
				get("pods", "-n", "kube-system", "-l", "k8s-app=kube-dns", "-o", "jsonpath={.items[0].status.podIP}") +
					":53",
				get("service", "-n", "kube-system", "kube-dns", "-o", "jsonpath={.spec.clusterIP}") + ":53",
				get("service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}") + ":443",
			} {
				if neighbour.reaches(t, door) {
					t.Errorf("the neighbour reaches %s", door)
				}
			}

			listening := host.listen(t, "0.0.0.0:7777")
			defer listening.Close()
			for _, door := range []string{"10.77.0.1 7777", "192.0.2.1 7777"} {
				_, err := host.try("kubectl", "exec", "deployment/web", "--", "nc", "-w", "2", "-z",
					strings.Fields(door)[0], strings.Fields(door)[1])
				if (err == nil) != (egress == "true") {
					t.Errorf("a pod connects to the host at %s: %v", door, err)
				}
			}
			host.run("kubectl", "exec", "deployment/web", "--", "nc", "-w", "5", "-z", "10.77.0.1", "6443")

			host.bonsai("down")
			if got := forwards(); got != "0" {
				t.Errorf("the host still forwards: %s", got)
			}
		})
	}
}

// reaches reports whether a TCP connection from the machine to the address is accepted within two usual seconds.
func (m machine) reaches(t *testing.T, address string) bool {
	reached := false
	m.within(t, func() {
		conn, err := net.DialTimeout("tcp", address, here(2*time.Second))
		if reached = err == nil; reached {
			conn.Close()
		}
	})
	return reached
}

// listen listens on the machine until the test closes it. What connects is accepted by the kernel.
func (m machine) listen(t *testing.T, address string) net.Listener {
	var l net.Listener
	m.within(t, func() {
		var err error
		if l, err = net.Listen("tcp", address); err != nil {
			t.Fatal(err)
		}
	})
	return l
}

// within calls do in the machine's network namespace.
func (m machine) within(t *testing.T, do func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine: it is in another namespace
		ns, err := netns.GetFromPath(filepath.Join("/run/netns", m.netns))
		if err == nil {
			err = netns.Set(ns)
		}
		if err == nil {
			do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
