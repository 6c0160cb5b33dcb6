package host

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestForwardIsOpenedWhereTheHostDrops: the rules go to the filter that drops, whichever program has written its
// policy.
func TestForwardIsOpenedWhereTheHostDrops(t *testing.T) {
	for _, program := range []string{"iptables", "iptables-legacy"} {
		t.Run(program, func(t *testing.T) { testForward(t, program) })
	}
}

// testForward runs in a network namespace of its own, so that it meets the rules of no machine.
func testForward(t *testing.T, program string) {
	if _, err := exec.LookPath(program); err != nil || os.Geteuid() != 0 {
		t.Skipf("SKIPPED: needs root and %s", program)
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
	if err := Run(ctx, "", program, "-P", "FORWARD", "DROP"); err != nil {
		t.Skipf("SKIPPED: %s does not work here: %v", program, err)
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

// TestInputIsOpenedWhereTheHostRefuses runs in a network namespace of its own, too.
func TestInputIsOpenedWhereTheHostRefuses(t *testing.T) {
	if _, err := exec.LookPath("iptables"); err != nil || os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root and iptables")
	}
	runtime.LockOSThread() // see above
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("SKIPPED: no network namespace: %v", err)
	}
	ctx, link := t.Context(), "bonsai-1"
	services := []Service{{"tcp", netip.MustParseAddrPort("10.77.0.1:6443")},
		{"udp", netip.MustParseAddrPort("[fd00::1]:53")}}
	input := func() string { return chain(ctx, "iptables", "INPUT") + chain(ctx, "ip6tables", "INPUT") }
	if opened, err := OpenInput(ctx, link, services); err != nil || opened || strings.Contains(input(), link) {
		t.Fatalf("where nothing refuses: %v, %s", err, input())
	}
	for _, program := range inputPrograms {
		if err := Run(ctx, "", program, "-P", "INPUT", "DROP"); err != nil {
			t.Skipf("SKIPPED: %s does not work here: %v", program, err)
		}
	}
	before := input()
	for _, want := range []bool{true, false} { // what is open already stays as it is
		if opened, err := OpenInput(ctx, link, services); err != nil || opened != want {
			t.Fatalf("opened %v, not %v: %v", opened, want, err)
		}
	}
	for _, want := range []string{"-A INPUT -d 10.77.0.1/32 -i bonsai-1 -p tcp -m tcp --dport 6443 -j ACCEPT",
		"-A INPUT -d fd00::1/128 -i bonsai-1 -p udp -m udp --dport 53 -j ACCEPT",
		"-A INPUT -i bonsai-1 -p ipv6-icmp -j ACCEPT"} {
		if !strings.Contains(input(), want) {
			t.Errorf("no %q in\n%s", want, input())
		}
	}
	for range 2 { // taking away twice is fine, and takes no other link's
		if err := errors.Join(CloseInput(ctx, "bonsai"), CloseInput(ctx, link)); err != nil {
			t.Fatal(err)
		}
	}
	if got := input(); got != before {
		t.Errorf("left behind:\n%s\nbefore:\n%s", got, before)
	}
}

// TestRefuses: a chain refuses by its policy, or by a last rule without a condition.
func TestRefuses(t *testing.T) {
	t.Parallel()
	for chain, want := range map[string]bool{
		"": false,
		"-P INPUT ACCEPT\n-A INPUT -s 192.0.2.1/32 -j DROP\n": false,
		"-P INPUT DROP\n": true,
		"-P FORWARD ACCEPT\n-A FORWARD -j REJECT --reject-with icmp-host-prohibited\n": true,
	} {
		if got := refuses(chain); got != want {
			t.Errorf("%q: %v", chain, got)
		}
	}
}
