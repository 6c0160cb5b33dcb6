package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// smallDisk mounts a file system of its own with so many MiB until the test ends.
func smallDisk(t *testing.T, mib int64) string {
	t.Helper()
	dir := t.TempDir()
	image, mount := filepath.Join(dir, "disk"), filepath.Join(dir, "m")
	file, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(mib << 20); err != nil {
		t.Fatal(err)
	}
	file.Close()
	if out, err := exec.Command("mkfs.ext4", "-q", "-m", "0", image).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: cannot make a file system: %v: %s", err, out)
	}
	if err := os.Mkdir(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, mount).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: cannot mount a file: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return mount
}

// TestDiskPressure: on a cluster of its own on a small disk, a pod fills the disk. It goes, for what it has written;
// those that have written little stay, and the node takes pods again.
func TestDiskPressure(t *testing.T) {
	isLong(t)
	t.Parallel()
	dir := t.TempDir()
	small := env{bin: cluster.bin, data: filepath.Join(smallDisk(t, 2048), "data"), home: dir,
		kubeconfig: filepath.Join(dir, "config")}
	config := filepath.Join(dir, "cluster.yaml")
	const settings = `apiVersion: bonsai.io/v1alpha1
kind: Cluster
name: small
networking: {egress: false}
addons: {coredns: false, local-path: false}
componentFlags: {kubelet: {eviction-hard: "nodefs.available<500Mi", eviction-pressure-transition-period: 5s}}
`
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := small.command(2*time.Minute, "bonsai", "--data-dir", small.data, "up", "--config",
		config); err != nil {
		t.Fatal(out, err)
	}
	t.Cleanup(func() {
		if out, err := small.command(2*time.Minute, "bonsai", "--data-dir", small.data, "down"); err != nil {
			t.Error(out, err)
		}
	})
	k := kubectl{t: t, binary: "kubectl", namespace: "default", kubeconfig: small.kubeconfig}
	const scratch = "volumes: [{name: s, emptyDir: {}}]"
	const mounted = "volumeMounts: [{name: s, mountPath: /s}]"
	k.apply(podOf("little", "head -c 20000000 /dev/zero >/s/f; exec sleep 3600", mounted, scratch))
	k.apply(podOf("nothing", "exec sleep 3600", mounted, scratch))
	k.ready("little", "nothing")
	k.apply(podOf("much", "head -c 1600000000 /dev/zero >/s/f; exec sleep 3600", mounted, scratch))
	k.field("much", ".status.reason", "Evicted")
	if out := k.run("get", "pod", "much", "-o",
		"jsonpath={.status.message}"); !strings.Contains(out, "The node was low on resource: ephemeral-storage.") {
		t.Error(out)
	}
	k.events("much", "The node was low on resource: ephemeral-storage.")
	k.eventually("no more pressure", is("False"), "get", "node", "n1", "-o",
		`jsonpath={.status.conditions[?(@.type=="DiskPressure")].status}`)
	for _, pod := range []string{"little", "nothing"} {
		k.field(pod, ".status.phase", "Running")
		k.field(pod, ".status.containerStatuses[0].restartCount", "0")
	}
	k.apply(podOf("later", "exec sleep 3600", "", ""))
	k.ready("later")
}
