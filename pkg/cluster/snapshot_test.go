package cluster

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestSnapshot: a snapshot has what makes the cluster, and a restoration puts exactly that in place: what was written later is gone,
// what was removed is back. What containerd never writes again is shared, everything else is a copy.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	if err := c.save(); err != nil {
		t.Fatal(err)
	}
	const lib = "nodes/n1/lib/containerd/"
	state := map[string]string{
		"etcd/member/wal": "1", "pki/ca.crt": "2", "kubeconfig/admin.conf": "3",
		"nodes/n1/lib/local-path/claim/file": "4", "nodes/n1/etc/node.json": "5",
		lib + "io.containerd.content.v1.content/blobs/sha256/x":               "6",
		lib + "io.containerd.content.v1.content/ingest/y":                     "7",
		lib + "io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs/bin/sh":  "8",
		lib + "io.containerd.snapshotter.v1.overlayfs/metadata.db":            "9",
		lib + "io.containerd.metadata.v1.bolt/meta.db":                        "10",
		"nodes/n2/lib/containerd/io.containerd.snapshotter.v1.native/other.x": "11",
	}
	write := func(path, content string) {
		t.Helper()
		if err := writeFile(c.layout().at(path), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	for path, content := range state {
		write(path, content)
	}
	write("logs/etcd.log", "not this")
	if err := os.Symlink("target", c.layout().at("nodes/n1/lib/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.layout().at("nodes/n1/lib/local-path"), os.ModeSticky|0o777); err != nil {
		t.Fatal(err)
	}
	if err := copySaved(t.Context(), c.DataDir, c.layout().snapshot("clean")); err != nil {
		t.Fatal(err)
	}
	inode := func(path string) uint64 {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Ino
	}
	for path := range state {
		shared := inode(c.layout().at(path)) == inode(c.layout().at("snapshots/clean", path))
		if want := strings.Contains(path, "/blobs/") || strings.Contains(path, "/snapshots/"); shared != want {
			t.Errorf("%s is shared: %t", path, shared)
		}
	}
	if _, err := os.Stat(c.layout().at("snapshots/clean/logs")); !os.IsNotExist(err) {
		t.Errorf("the logs are saved, too: %v", err)
	}
	for path := range state {
		if !strings.Contains(path, "/blobs/") && !strings.Contains(path, "/snapshots/") {
			write(path, "changed")
		}
	}
	write("etcd/member/new", "later")
	if err := os.RemoveAll(c.layout().at("pki")); err != nil {
		t.Fatal(err)
	}
	next := c.layout().at(restoring)
	if err := copySaved(t.Context(), c.layout().snapshot("clean"), next); err != nil {
		t.Fatal(err)
	}
	if err := exchange(c.DataDir, next); err != nil {
		t.Fatal(err)
	}
	for path, want := range state {
		if got, err := os.ReadFile(c.layout().at(path)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if _, err := os.Stat(c.layout().at("etcd/member/new")); !os.IsNotExist(err) {
		t.Errorf("what was written later is there: %v", err)
	}
	if target, err := os.Readlink(c.layout().at("nodes/n1/lib/link")); err != nil || target != "target" {
		t.Errorf("%s, %v", target, err)
	}
	if info, err := os.Stat(c.layout().at("nodes/n1/lib/local-path")); err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if log, err := os.ReadFile(c.layout().at("logs/etcd.log")); err != nil || string(log) != "not this" {
		t.Errorf("the log: %q, %v", log, err)
	}
	var out strings.Builder
	if err := PrintSnapshots(c.DataDir, &out); err != nil || !strings.Contains(out.String(), "clean") {
		t.Errorf("%s, %v", &out, err)
	}
}

// TestSnapshotNames: a name leads to nothing but a snapshot.
func TestSnapshotNames(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	if err := c.save(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "../pki", "a/b", "none"} {
		if err := RemoveSnapshot(c.DataDir, name); err == nil || !strings.Contains(err.Error(), "no snapshot called") {
			t.Errorf("remove %q: %v", name, err)
		}
		if _, err := RestoreSnapshot(t.Context(), c.DataDir, name, io.Discard); err == nil || !strings.Contains(err.Error(), "no snapshot called") {
			t.Errorf("restore %q: %v", name, err)
		}
	}
	if err := SaveSnapshot(t.Context(), c.DataDir, "../x", io.Discard); err == nil {
		t.Error("saved as ../x")
	}
	if err := os.MkdirAll(filepath.Join(c.layout().snapshot("there")), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := SaveSnapshot(t.Context(), c.DataDir, "there", io.Discard); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("saved twice: %v", err)
	}
}
