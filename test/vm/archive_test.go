package vm

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"
)

var archive = flag.String("archive", "", "the release's archive that TestArchive installs (make release)")

// unpackArchive returns a directory with the content of the archive.
func unpackArchive(t *testing.T) string {
	t.Helper()
	if *archive == "" {
		t.Skip("SKIPPED: runs with -archive (make e2e-vm)")
	}
	dir := t.TempDir()
	if err := run(t.Context(), "tar", "-C", dir, "-xf", *archive); err != nil {
		t.Fatal(err)
	}
	inner, err := filepath.Glob(filepath.Join(dir, "*", "install.sh"))
	if err != nil || len(inner) != 1 {
		t.Fatalf("%s has not one install.sh: %q, %v", *archive, inner, err)
	}
	return filepath.Dir(inner[0])
}

// TestArchive: a machine that has nothing of what a cluster runs gets all of it from the archive, without a network. A
// second installation, of the same archive, keeps the cluster, and the uninstallation leaves nothing.
func TestArchive(t *testing.T) {
	dir := unpackArchive(t)
	m := unstarted(t, func(c *Config) {
		programs, err := MakePrograms(t.Context(), dir, c.Programs.disk)
		if err != nil {
			t.Fatal(err)
		}
		c.Programs = programs
	})
	start(t, m)
	// Triggers would make the initial RAM disk again, which takes an emulated machine minutes.
	must(t, m, "DEBIAN_FRONTEND=noninteractive dpkg --purge --no-triggers --force-depends containerd runc "+
		"containernetworking-plugins nftables iptables conntrack socat busybox-static </dev/null")
	must(t, m, programsMount+"/install.sh")
	t.Log(must(t, m, "bonsai check; true"))
	cluster(t, m)
	before := must(t, m, objects)
	if out := must(t, m, programsMount+"/install.sh 2>&1 || echo refused"); !strings.Contains(out, "is in use") ||
		!strings.HasSuffix(out, "refused") {
		t.Errorf("an upgrade below a running cluster: %s", out)
	}
	reboot(t, m)
	back(t, m)
	must(t, m, "systemctl stop "+unit+" && "+programsMount+"/install.sh && systemctl start "+unit)
	back(t, m)
	noPodTwice(t, m)
	if after := must(t, m, objects); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if out := must(t, m, "/usr/local/lib/bonsai/uninstall.sh 2>&1 || echo refused"); !strings.Contains(out,
		"nothing was removed") || !strings.HasSuffix(out, "refused") {
		t.Errorf("an uninstallation below a running cluster: %s", out)
	}
	must(t, m, "systemctl disable --now "+unit+" && bonsai down --name try")
	// The kernel's side of a cluster. The machine has no nft of its own, and the archive's is about to go.
	if left := must(t, m, "find /sys/fs/cgroup -name 'bonsai*'; ls /run/netns 2>/dev/null; "+
		"grep -e bonsai /proc/mounts | grep -v ' "+programsMount+" '; ip -o link | grep -v -e ' lo:' -e ' eth0:'; "+
		"/usr/local/lib/bonsai/runtime/nft list ruleset; true"); left != "" {
		t.Errorf("left in the kernel: %s", left)
	}
	must(t, m, "/usr/local/lib/bonsai/uninstall.sh")
	if left := must(t, m, "find /usr/local /etc/systemd /var/lib/bonsai-clusters /opt '(' -name '*bonsai*' -o -lname '*bonsai*' ')' "+
		"2>/dev/null; true"); left != "" {
		t.Errorf("left: %s", left)
	}
}
