package rootless

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLeases: several commands have a lease, a keeper gets the lock when the last one ends, and a command that waited
// for a keeper's end gets a lease that others see.
func TestLeases(t *testing.T) {
	t.Parallel()
	p := place(filepath.Join(t.TempDir(), "place"))
	first, err := p.hold()
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.hold()
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := os.OpenFile(p.lease(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	locked := make(chan error, 1)
	go func() { locked <- flock(keeper, unix.LOCK_EX) }()
	for _, lease := range []*os.File{first, second} {
		select {
		case err := <-locked:
			t.Fatalf("a keeper ends beside commands: %v", err)
		default:
		}
		if err := lease.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-locked; err != nil {
		t.Fatal(err)
	}
	held := make(chan *os.File, 1)
	go func() {
		lease, err := p.hold()
		if err != nil {
			t.Error(err)
		}
		held <- lease
	}()
	if err := p.remove(); err != nil {
		t.Fatal(err)
	}
	if err := keeper.Close(); err != nil {
		t.Fatal(err)
	}
	lease := <-held
	if lease == nil || !p.isCurrent(lease) {
		t.Error("the lease is of a file that nobody sees")
	}
}

// TestEnd: commands that come while a keeper takes its place away all have the same lease afterwards.
func TestEnd(t *testing.T) {
	t.Parallel()
	p := place(filepath.Join(t.TempDir(), "place"))
	for range 300 {
		keeper, err := p.hold()
		if err != nil {
			t.Fatal(err)
		}
		if err := flock(keeper, unix.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		leases := make(chan *os.File)
		const commands = 4
		for range commands {
			go func() {
				lease, err := p.hold()
				if err != nil {
					t.Error(err)
				}
				leases <- lease
			}()
		}
		if err := p.remove(); err != nil {
			t.Error(err)
		}
		if err := keeper.Close(); err != nil {
			t.Error(err)
		}
		var all []*os.File
		for range commands {
			all = append(all, <-leases)
		}
		for _, lease := range all {
			if !p.isCurrent(lease) {
				t.Fatal("a lease is of a file that nobody sees")
			}
			if err := lease.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if left, err := os.ReadDir(filepath.Dir(string(p))); err != nil || len(left) != 1 {
		t.Errorf("left beside the place: %v, %v", left, err)
	}
}

// TestForeignPlace: a place that others may write is refused.
func TestForeignPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := place(dir).hold(); err == nil || !strings.Contains(err.Error(), "not yours alone") {
		t.Error(err)
	}
}

// TestState: what a keeper writes is what commands read.
func TestState(t *testing.T) {
	t.Parallel()
	p := placeOf(User{Runtime: t.TempDir()}, "/home/anna/.local/share")
	want := state{PID: 7, User: User{Name: "anna", UID: 1000, GID: 100, Runtime: "/run/user/1000"}, Network: "pasta"}
	if err := p.write(want); err != nil {
		t.Fatal(err)
	}
	if got, err := p.read(); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if other := placeOf(User{}, "/srv"); filepath.Base(string(other)) == filepath.Base(string(p)) {
		t.Errorf("two homes share %s", other)
	}
}

// TestResolverFile: links are followed to a file that need not exist.
func TestResolverFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for link, target := range map[string]string{"a": "b", "b": at("run/stub"), "loop": "loop"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{"a": "run/stub", "none": "none"} {
		if got, err := resolverFile(at(path)); err != nil || got != at(want) {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if got, err := resolverFile(at("loop")); err == nil {
		t.Errorf("a loop leads to %q", got)
	}
}

// TestNetworkArguments: no program gets a mapping to the machine's loopback.
func TestNetworkArguments(t *testing.T) {
	t.Parallel()
	for _, name := range Networks() {
		line := strings.Join(networkArguments(name, 77), " ")
		want := []string{"--no-map-gw", "--tcp-ports none", "--udp-ports none", "--tcp-ns none", "--udp-ns none", " 77"}
		if name == "slirp4netns" {
			want = []string{"--disable-host-loopback", "--enable-sandbox", " 77 "}
		}
		for _, text := range want {
			if !strings.Contains(line, text) {
				t.Errorf("no %q in %q", text, line)
			}
		}
	}
}
