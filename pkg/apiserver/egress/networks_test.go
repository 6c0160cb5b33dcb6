package egress

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bonsai/pkg/apiserver/egress/egresstest"
)

// TestNetworks: nothing goes to addresses that the machine has in other network namespaces, and nothing at all where
// these cannot be read.
func TestNetworks(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root and ip")
	}
	file, there := network(t, "192.0.2.44"), netip.MustParseAddr("192.0.2.44")
	if err := (Dialer{}).Allow(t.Context(), there); err != nil {
		t.Errorf("an address that this namespace does not have: %v", err)
	}
	host := Dialer{Networks: []string{file}}
	if err := host.Allow(t.Context(), there); err == nil || err.Error() != NotAllowed().Error() {
		t.Errorf("the other namespace's address: %v", err)
	}
	if _, err := host.DialContext(t.Context(), "tcp", "192.0.2.44:1"); err == nil ||
		!strings.Contains(err.Error(), "not allowed") {
		t.Errorf("connecting to the other namespace's address: %v", err)
	}
	if err := host.Allow(t.Context(), netip.MustParseAddr("192.0.2.45")); err != nil {
		t.Errorf("another machine: %v", err)
	}
	if own := egresstest.OwnAddress(t); host.Allow(t.Context(), own) == nil {
		t.Errorf("the server's own address %s is allowed", own)
	}
	missing := []string{file, t.TempDir() + "/none"}
	if err := (Dialer{Networks: missing}).Allow(t.Context(), netip.MustParseAddr("192.0.2.45")); err == nil {
		t.Error("a connection is allowed that may lead to the machine")
	}
	if err := CheckNetworks(missing[:1]); err != nil {
		t.Error(err)
	}
	if err := CheckNetworks(missing); err == nil || !strings.Contains(err.Error(), missing[1]) {
		t.Errorf("a missing namespace: %v", err)
	}
}

// network makes a network namespace with an address, which lasts as long as the test, and returns its file.
func network(t *testing.T, address string) string {
	type made struct {
		file string
		err  error
	}
	ready := make(chan made)
	go func() {
		runtime.LockOSThread() // and never unlock it
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			ready <- made{"", err}
			return
		}
		out, err := exec.Command("ip", "addr", "add", address, "dev", "lo").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		ready <- made{fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), err}
		<-t.Context().Done()
	}()
	m := <-ready
	if m.err != nil {
		t.Skipf("SKIPPED: no network namespace: %v", m.err)
	}
	return m.file
}
