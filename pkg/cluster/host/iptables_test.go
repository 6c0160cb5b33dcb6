package host

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestForwardIsOpenedWhereTheHostDrops runs in a network namespace of its own, so that it meets the rules of no
// machine.
func TestForwardIsOpenedWhereTheHostDrops(t *testing.T) {
	if _, err := exec.LookPath("iptables"); err != nil || os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root and iptables")
	}
	// The thread is not unlocked: it ends with this goroutine, and its namespace with it.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("SKIPPED: no network namespace: %v", err)
	}
	ctx, link := t.Context(), "bonsai-1"
	if err := OpenForward(ctx, link, false); err != nil || strings.Contains(ForwardChain(ctx), link) {
		t.Fatalf("without a policy of DROP: %v, %s", err, ForwardChain(ctx))
	}
	if err := Run(ctx, "", "iptables", "-P", "FORWARD", "DROP"); err != nil {
		t.Skipf("SKIPPED: iptables does not work here: %v", err)
	}
	before := ForwardChain(ctx)
	if err := OpenForward(ctx, link, false); err != nil {
		t.Fatal(err)
	}
	const all = "-A FORWARD -o bonsai-1 -j ACCEPT"
	if got := ForwardChain(ctx); strings.Contains(got, all) {
		t.Errorf("others may begin: %s", got)
	}
	for _, want := range []string{"-A FORWARD -i bonsai-1 ! -o bonsai-1 -j ACCEPT",
		"-A FORWARD -o bonsai-1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"} {
		if got := ForwardChain(ctx); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if err := errors.Join(CloseForward(ctx, link), OpenForward(ctx, link, true)); err != nil ||
		!strings.Contains(ForwardChain(ctx), all) {
		t.Errorf("others may not begin: %v\n%s", err, ForwardChain(ctx))
	}
	for range 2 { // taking away twice is fine
		if err := CloseForward(ctx, link); err != nil {
			t.Fatal(err)
		}
	}
	if got := ForwardChain(ctx); got != before {
		t.Errorf("left behind:\n%s\nbefore:\n%s", got, before)
	}
}
