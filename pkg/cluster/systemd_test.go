package cluster

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bonsai/pkg/cluster/host/cgroup"
)

// TestNotify: systemd gets assignments by line, and no child of this process gets the socket.
func TestNotify(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	n := newNotifier()
	if value, found := os.LookupEnv("NOTIFY_SOCKET"); found {
		t.Errorf("children get %q", value)
	}
	if err := n.notify("READY=1", status("waits for\nthe nodes")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	count, err := listener.Read(got)
	if err != nil || string(got[:count]) != "READY=1\nSTATUS=waits for; the nodes" {
		t.Errorf("%q, %v", got[:count], err)
	}
	if err := newNotifier().notify("READY=1"); err != nil {
		t.Errorf("what is no service: %v", err)
	}
}

// TestOwnGroup reads what a process's cgroup file says on v2, and on a machine with both versions.
func TestOwnGroup(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0::/system.slice/bonsai-0a0b0c0d.scope\n":       "/sys/fs/cgroup/system.slice/bonsai-0a0b0c0d.scope",
		"9:name=systemd:/\n8:pids:/other\n0::/one two\n": "/sys/fs/cgroup/one two",
		"9:name=systemd:/\n":                             "",
	} {
		path := filepath.Join(t.TempDir(), "cgroup")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ownGroup(path); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// TestTreesBelow: a cluster's groups are found at the root, in a scope and in a unit, those of others are not looked
// into.
func TestTreesBelow(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const mark = "bonsai-0a0b0c0d"
	want := []string{mark, "system.slice/" + mark + ".scope/" + mark,
		"system.slice/system-bonsai.slice/bonsai@dev.service/" + mark}
	for _, dir := range append([]string{mark + "/n1/kubepods/" + mark, "bonsai-ffffffff/n1/" + mark, "user.slice"},
		want...) {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got, err := cgroup.TreesBelow(root, mark)
	for i := range got {
		got[i], _ = filepath.Rel(root, got[i])
	}
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := cgroup.TreesBelow(root, "bonsai-00000000"); err != nil || len(got) > 0 {
		t.Errorf("of none: %q, %v", got, err)
	}
}
