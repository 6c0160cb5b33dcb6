package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestKeepData: down --keep-data leaves only the data directory, and up goes on with the same cluster: the same objects
// with the same UIDs, and the pods run again with the data of their claims.
func TestKeepData(t *testing.T) {
	k := newNamespace(t, "kubectl", "keep-data")
	k.apply(web)
	k.apply(database)
	k.run("rollout", "status", "deployment/web", bound(80))
	k.rolledOut("statefulset/db", "partitioned roll out complete: 2 new pods")
	uid := []string{"get", "deployment", "web", "-o", "jsonpath={.metadata.uid}"}
	before := k.run(uid...)

	out, err := cluster.command(2*time.Minute, "bonsai", "--data-dir", cluster.data, "down", "--keep-data")
	if err != nil {
		t.Fatal(out, err)
	}
	if left, err := leftovers(); err != nil || len(left) > 0 {
		t.Errorf("down --keep-data left behind: %v, %v", left, err)
	}
	if out, err = cluster.command(3*time.Minute, "bonsai", cluster.upArgs()...); err != nil {
		t.Fatal(out, err)
	}
	if after := k.run(uid...); after != before {
		t.Errorf("the Deployment is %s, not %s", after, before)
	}
	k.eventually("the pods run again", func(out string) bool { return strings.Count(out, "true") == 5 },
		"get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[0].ready}")
	k.eventually("the Service answers again", contains("web-"), "exec", "deployment/web", "--", "timeout", "5", "wget",
		"-qO-", "http://web")
	k.eventually("the claim's data", is("started\nstarted"), "exec", "db-1", "--", "cat", "/data/log")
}

// TestUpAgain: up on a running cluster changes nothing and says so; with other settings it refuses and changes nothing.
func TestUpAgain(t *testing.T) {
	t.Parallel()
	status := func() string {
		out, err := cluster.command(time.Minute, "bonsai", "--data-dir", cluster.data, "status")
		if err != nil {
			t.Fatal(out, err)
		}
		return pids(out)
	}
	before := status()
	out, err := cluster.command(time.Minute, "bonsai", cluster.upArgs()...)
	if err != nil || !strings.Contains(out, "already up: nothing changed") {
		t.Errorf("%s, %v", out, err)
	}
	out, err = cluster.command(time.Minute, "bonsai", "--data-dir", cluster.data, "up", "--nodes", "3",
		"--egress=false")
	if err == nil || !strings.Contains(out, "nodes: n1 n2 now, n1 n2 n3 wanted") {
		t.Errorf("other settings: %s, %v", out, err)
	}
	if after := status(); after != before {
		t.Errorf("processes before:\n%s\nafter:\n%s", before, after)
	}
}

// pids keeps of bonsai status where which process has which pid.
func pids(status string) string {
	var out []string
	for _, line := range strings.Split(status, "\n") {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		if _, err := strconv.Atoi(f[2]); err == nil {
			out = append(out, strings.Join(f[:3], " "))
		}
	}
	return strings.Join(out, "\n")
}

// TestBadFlags: every program refuses a flag it does not know, names it, and exits with 1.
func TestBadFlags(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet",
		"kube-proxy", "bonsai-network", "bonsai-traces", "kubectl", "bonsai"} {
		out, err := cluster.command(20*time.Second, name, "--no-such-flag")
		if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(out, "no-such-flag") {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
}
