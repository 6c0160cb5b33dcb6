package systemd

import (
	"net"
	"os"
	"path/filepath"
	"testing"
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
	n := NewNotifier()
	if value, found := os.LookupEnv("NOTIFY_SOCKET"); found {
		t.Errorf("children get %q", value)
	}
	if err := n.Notify("READY=1", Status("waits for\nthe nodes")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	count, err := listener.Read(got)
	if err != nil || string(got[:count]) != "READY=1\nSTATUS=waits for; the nodes" {
		t.Errorf("%q, %v", got[:count], err)
	}
	if err := NewNotifier().Notify("READY=1"); err != nil {
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

// TestUnitIn: the unit is found on v2, and on v1 in systemd's own hierarchy alone.
func TestUnitIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0::/system.slice/system-bonsai.slice/bonsai@dev.service\n":                            "bonsai@dev.service",
		"5:pids:/docker.service\n1:name=systemd:/system.slice/bonsai@a.service\n0::/\n":        "bonsai@a.service",
		"0::/system.slice/bonsai-0a0b0c0d.scope\n":                                             "",
		"0::/user.slice/user-0.slice/session-1.scope\n5:pids:/system.slice/bonsai@a.service\n": "",
		"": "",
	} {
		path := filepath.Join(t.TempDir(), "cgroup")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := unitIn(path); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
