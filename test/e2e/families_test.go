package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// TestIPFamilies: in a cluster of both families, and in one of IPv6 alone whose kube-proxy writes iptables, pods of two
// nodes have addresses of each, a Service is reached by those that DNS gives and from the host by its balancer's, and
// nothing of IPv6 is left after.
func TestIPFamilies(t *testing.T) {
	t.Parallel()
	for family, want := range map[string]struct{ addresses, mode string }{"dual": {"10. fd00:b05b:", "nftables"},
		"ipv6": {"fd00:b05b:", "iptables"}} {
		t.Run(family, func(t *testing.T) {
			dir := t.TempDir()
			other := env{bin: cluster.bin, data: filepath.Join(dir, "other"), home: dir,
				kubeconfig: filepath.Join(dir, "config")}
			file := filepath.Join(dir, "cluster.yaml")
			text := "apiVersion: bonsai.io/v1alpha1\nkind: Cluster\nname: " + family +
				"\nnodes: [{}, {}]\nnetworking: {ipFamily: " + family +
				", egress: false}\ncomponentFlags: {kube-proxy: {proxy-mode: " + want.mode + "}}\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { other.command(2*time.Minute, "bonsai", "--data-dir", other.data, "down") })
			if out, err := other.command(3*time.Minute, "bonsai", "--data-dir", other.data, "up", "--config",
				file); err != nil {
				t.Fatal(out, err)
			}
			kubectl := func(args ...string) string {
				t.Helper()
				out, err := other.command(time.Minute, "kubectl", args...)
				if err != nil {
					t.Fatal(out, err)
				}
				return out
			}
			kubectl("create", "deployment", "web", "--image=localhost/busybox:1.0", "--replicas=2", "--", "httpd", "-f",
				"-p", "[::]:8080", "-h", "/etc")
			kubectl("create", "service", "loadbalancer", "web", "--tcp=80:8080")
			kubectl("patch", "service", "web", "-p", `{"spec":{"ipFamilyPolicy":"PreferDualStack"}}`)
			kubectl("rollout", "status", "deployment", "web", bound(60))
			ips := strings.Fields(kubectl("get", "pods", "-o", "jsonpath={.items[0].status.podIPs[*].ip}"))
			prefixes := strings.Fields(want.addresses)
			if len(ips) != len(prefixes) {
				t.Fatalf("a pod has the addresses %q, want %q", ips, prefixes)
			}
			for i, prefix := range prefixes {
				if !strings.HasPrefix(ips[i], prefix) {
					t.Errorf("a pod has the addresses %q, want %q", ips, prefixes)
				}
			}
			for _, ip := range strings.Fields(
				kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIPs[*]}")) {
				if out := kubectl("exec", "deployment/web", "--", "nslookup",
					"web.default.svc.cluster.local"); !strings.Contains(out, ip) {
					t.Errorf("DNS does not know %s:\n%s", ip, out)
				}
				if strings.Contains(ip, ":") {
					ip = "[" + ip + "]"
				}
				if out := kubectl("exec", "deployment/web", "--", "wget", "-qO-",
					"http://"+ip+"/hostname"); !strings.HasPrefix(out, "web-") {
					t.Errorf("at %s: %q", ip, out)
				}
			}
			client := http.Client{Timeout: here(5 * time.Second)}
			waitFor(t, "the host reaches the balancer's addresses", func() bool {
				addresses := strings.Fields(
					kubectl("get", "service", "web", "-o", "jsonpath={.status.loadBalancer.ingress[*].ip}"))
				for _, ip := range addresses {
					if strings.Contains(ip, ":") {
						ip = "[" + ip + "]"
					}
					answer, err := client.Get("http://" + ip + "/hostname")
					if err != nil {
						return false
					}
					answer.Body.Close()
				}
				return len(addresses) == len(prefixes)
			})
			if out, err := other.command(2*time.Minute, "bonsai", "--data-dir", other.data, "down"); err != nil {
				t.Error(out, err)
			}
			routes, err := netlink.RouteList(nil, netlink.FAMILY_V6)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range routes {
				if r.Dst != nil && strings.HasPrefix(r.Dst.String(), "fd00:b05") {
					t.Errorf("the route to %s is left", r.Dst)
				}
			}
		})
	}
}
