package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDiskFills: somebody else fills the disk that a running cluster has its data on. `status` says so and names the
// directory, and once there is room again the cluster takes writes and runs pods without a hand, DNS among them; `down`
// on a disk that is full again leaves nothing.
func TestDiskFills(t *testing.T) {
	isLong(t)
	disk := smallDisk(t, 1536)
	home := t.TempDir()
	e := env{bin: cluster.bin, data: filepath.Join(disk, "data"), home: home, kubeconfig: filepath.Join(home, "config")}
	t.Cleanup(func() { e.command(2*time.Minute, "bonsai", "--data-dir", e.data, "down") })
	config := filepath.Join(home, "cluster.yaml")
	const settings = `apiVersion: bonsai.io/v1alpha1
kind: Cluster
name: filled
networking: {egress: false}
componentFlags: {kubelet: {eviction-pressure-transition-period: 5s}}
`
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	e.must(t, "bonsai", "--data-dir", e.data, "up", "--config", config)
	k := kubectl{t: t, binary: "kubectl", namespace: "default", kubeconfig: e.kubeconfig}
	k.run("create", "deployment", "web", "--image=localhost/busybox:1.0", "--", "sleep", "1000000")
	k.run("rollout", "status", "deployment/web", bound(80))

	other := filepath.Join(disk, "other")
	fill(t, other)
	out, err := e.command(time.Minute, "bonsai", "--data-dir", e.data, "status")
	if err == nil || !strings.Contains(out, e.data) || !strings.Contains(out, "no space left on device") {
		t.Errorf("status on a full disk: %s, %v", out, err)
	}
	full := "x=" + strings.Repeat("x", 100_000)
	for i := range 60 { // until etcd cannot grow any more, or has shown that it has room
		if _, err := e.command(time.Minute, "kubectl", "create", "configmap", fmt.Sprintf("big-%d", i),
			"--from-literal", full); err != nil {
			break
		}
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	k.eventually("writes are taken again", contains("configmap/after"), "create", "configmap", "after",
		"--from-literal=a=b", "--dry-run=none", "-o", "name")
	k.eventually("no pressure on the disk", is("False"), "get", "node", "n1", "-o",
		`jsonpath={.status.conditions[?(@.type=="DiskPressure")].status}`)
	k.run("scale", "deployment", "web", "--replicas=2")
	k.run("rollout", "status", "deployment/web", bound(85))
	k.run("-n", "kube-system", "rollout", "status", "deployment/coredns", bound(85))
	if out, err := e.command(time.Minute, "bonsai", "--data-dir", e.data, "status"); err != nil ||
		strings.Contains(out, "no space left") {
		t.Errorf("status afterwards: %s, %v", out, err)
	}

	fill(t, other)
	e.must(t, "bonsai", "--data-dir", e.data, "down")
	if _, err := os.Stat(e.data); !os.IsNotExist(err) {
		t.Errorf("the data directory is left: %v", err)
	}
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size >= 4096; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

// TestUnwritableData: `up` on a file system that takes no writes, or where the directory's parent is a file, names the
// directory and makes nothing.
func TestUnwritableData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("SKIPPED: cannot mount: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for data, why := range map[string]string{filepath.Join(dir, "data"): "read-only file system",
		filepath.Join(file, "data"): "not a directory"} {
		e := env{bin: cluster.bin, data: data, home: t.TempDir(), kubeconfig: filepath.Join(t.TempDir(), "config")}
		refused(t, e, []string{"--data-dir", data, why}, "--name", "unwritable")
	}
}

// TestTakenPorts: `up` with a port that a process has, for the API server or published, names port and process and
// makes nothing; so it does with an address that the machine does not have, and with a wait that is none.
func TestTakenPorts(t *testing.T) {
	t.Parallel()
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range []io.Closer{tcp, udp} {
			c.Close()
		}
	})
	dir := t.TempDir()
	e := env{bin: cluster.bin, data: filepath.Join(dir, "data"), home: dir, kubeconfig: filepath.Join(dir, "config")}
	// of what should have been refused
	t.Cleanup(func() { e.command(2*time.Minute, "bonsai", "--data-dir", e.data, "down") })
	_, port, err := net.SplitHostPort(tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, udpPort, err := net.SplitHostPort(udp.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	us := fmt.Sprintf("process %d", os.Getpid())
	refused(t, e, []string{"the port 127.0.0.1:" + port, us}, "--name", "taken", "--api-port", port)
	refused(t, e, []string{"the port 127.0.0.1:" + port, us}, "--name", "taken", "--port", port+":30080")
	refused(t, e, []string{"--advertise-address: 203.0.113.9 is no address of this machine"}, "--name", "taken",
		"--egress", "--advertise-address", "203.0.113.9")
	refused(t, e, []string{"the port mapping of 203.0.113.9:8080: 203.0.113.9 is no address of this machine"}, "--name",
		"taken", "--port", "203.0.113.9:8080:30080")
	refused(t, e, []string{"--wait", "must be more than 0"}, "--name", "taken", "--wait", "0s")
	refused(t, e, []string{"the port 127.0.0.1:" + udpPort + "/udp"}, "--name", "taken", "--port", udpPort+":30080/udp")
}

// refused has `up` fail with exit code 1 and a message of one line that says all of want, and nothing made.
func refused(t *testing.T, e env, want []string, args ...string) {
	t.Helper()
	before := links(t)
	out, err := e.command(time.Minute, "bonsai",
		append([]string{"--data-dir", e.data, "up", "--egress=false"}, args...)...)
	if err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("up %v: %s, %v", args, out, err)
	}
	_, said, found := strings.Cut(out, "bonsai: error: ")
	for _, w := range want {
		if !found || !strings.Contains(said, w) {
			t.Errorf("up %v does not say %q: %s", args, w, out)
		}
	}
	if _, err := os.Stat(e.data); err == nil {
		t.Errorf("up %v made its data directory", args)
	}
	if _, err := os.Stat(e.kubeconfig); err == nil {
		t.Errorf("up %v made a kubeconfig", args)
	}
	for link := range links(t) {
		if owner, err := os.ReadFile(filepath.Join("/sys/class/net", link, "ifalias")); !before[link] && err == nil &&
			strings.TrimSpace(string(owner)) == e.data {
			t.Errorf("up %v made the link %s", args, link)
		}
	}
}

// links are the names of the machine's links.
func links(t *testing.T) map[string]bool {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, l := range all {
		names[l.Name] = true
	}
	return names
}
