package e2e

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDNS: while `bonsai dns` runs, this machine resolves the names of the cluster and reaches its Services; afterwards
// it leads nowhere.
func TestDNS(t *testing.T) {
	k := newNamespace(t, "kubectl", "dns-on-host")
	k.apply(web)
	k.run("rollout", "status", "deployment/web", bound(80))
	k.run("expose", "deployment", "web", "--name=named", "--port=80", "--target-port=8080")
	const at = "127.0.0.1:10053"
	dns := exec.Command(filepath.Join(cluster.bin, "bonsai"), "--data-dir", cluster.data, "dns", "--listen", at)
	dns.Env = append(os.Environ(), "HOME="+cluster.home)
	if err := dns.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() error { return dns.Process.Signal(syscall.SIGTERM) }
	defer end() // if it has not ended yet
	for _, network := range []string{"udp", "tcp"} {
		resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, at)
		}}
		waitFor(t, "the name is resolved over "+network, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), here(time.Second))
			defer cancel()
			found, err := resolver.LookupHost(ctx, "named.dns-on-host.svc.cluster.local.")
			return err == nil && len(found) == 1 &&
				found[0] == k.run("get", "service", "named", "-o", "jsonpath={.spec.clusterIP}")
		})
	}
	address := k.run("get", "service", "named", "-o", "jsonpath={.spec.clusterIP}")
	client := http.Client{Timeout: here(2 * time.Second), Transport: &http.Transport{DisableKeepAlives: true}}
	reached := func() bool {
		resp, err := client.Get("http://" + address + "/")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return err == nil && strings.HasPrefix(string(body), "web-")
	}
	waitFor(t, "the Service answers", reached)
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if err := dns.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if reached() {
		t.Error("the Service still answers")
	}
}
