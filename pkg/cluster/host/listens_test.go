package host

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
)

// listenAt is the variable with the address at which TestListens, as a process of its own, listens.
const listenAt = "BONSAI_TEST_LISTEN_AT"

// TestListens: the socket of another process of the same network namespace does not count. A process of its own
// listens, because tests of this package may give this one's first thread, and so /proc, another network.
func TestListens(t *testing.T) {
	t.Parallel()
	if address := os.Getenv(listenAt); address != "" {
		l, err := net.Listen("tcp", address)
		fmt.Println(err)
		if err == nil {
			defer l.Close()
			io.Copy(io.Discard, os.Stdin) // until the test ends
		}
		return
	}
	silent, said := start(t, "")
	if said != "" || Listens("/proc", silent) {
		t.Errorf("a process listens that has no socket: %q", said)
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		pid, said := start(t, address)
		if said != "<nil>\n" {
			t.Logf("this machine has no %s: %s", address, said)
			continue
		}
		if !Listens("/proc", pid) {
			t.Errorf("a process that listens at %s does not", address)
		}
		if Listens("/proc", silent) {
			t.Errorf("another process's socket at %s counts", address)
		}
	}
	if Listens("/proc", 0) {
		t.Error("no process listens")
	}
}

// start starts a process until the test ends, and returns its id: this test, which listens at the address and says
// whether it could, or, without an address, one that only waits.
func start(t *testing.T, address string) (pid int, said string) {
	cmd := exec.Command("cat")
	if address != "" {
		cmd = exec.Command(os.Args[0], "-test.run=^TestListens$")
		cmd.Env = append(os.Environ(), listenAt+"="+address)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	if address != "" {
		if said, err = bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return cmd.Process.Pid, said
}
