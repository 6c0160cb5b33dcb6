package daemon

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// asCommand makes the test's own program a command that tidies up after a signal. Its value says which further signals
// end the context, and what comes while it tidies up.
const asCommand = "DAEMON_TEST_AS_COMMAND"

// TestMain is that command in a process that a test has started as one.
func TestMain(m *testing.M) {
	how := os.Getenv(asCommand)
	if how == "" {
		os.Exit(m.Run())
	}
	cmd := &cobra.Command{Use: "x", RunE: func(cmd *cobra.Command, _ []string) error {
		fmt.Println("at work")
		<-cmd.Context().Done()
		fmt.Println("tidying up")
		if strings.Contains(how, "more") {
			for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP} {
				if err := syscall.Kill(os.Getpid(), s); err != nil {
					return err
				}
			}
		}
		return os.WriteFile(os.Getenv("DAEMON_TEST_TIDY"), nil, 0o600)
	}}
	cmd.SetArgs([]string{})
	var hangups []os.Signal
	if strings.Contains(how, "hangup") {
		hangups = append(hangups, syscall.SIGHUP)
	}
	os.Exit(Main(cmd, hangups...))
}

// TestSignals: which signals let a command tidy up, and which end it at once, as a shell would see it.
func TestSignals(t *testing.T) {
	t.Parallel()
	// What this process catches its children do not ignore, even where it was started to ignore it, as by nohup.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP, syscall.SIGINT)
	t.Cleanup(func() { signal.Stop(caught) })
	for name, c := range map[string]struct {
		how, wrapper string
		signals      []syscall.Signal
		gone         bool // the reader of the output is gone when the signal comes
		died         syscall.Signal
		tidy         bool
	}{
		"TERM": {how: "component", signals: []syscall.Signal{syscall.SIGTERM}, tidy: true},
		"INT":  {how: "component", signals: []syscall.Signal{syscall.SIGINT}, tidy: true},
		"HUP of a component": {how: "component", signals: []syscall.Signal{syscall.SIGHUP},
			died: syscall.SIGHUP},
		"HUP":                    {how: "hangup", signals: []syscall.Signal{syscall.SIGHUP}, tidy: true},
		"HUP again and again":    {how: "hangup more", signals: []syscall.Signal{syscall.SIGHUP}, tidy: true},
		"INT, then HUP":          {how: "hangup more", signals: []syscall.Signal{syscall.SIGINT}, tidy: true},
		"INT with a broken pipe": {how: "component", signals: []syscall.Signal{syscall.SIGINT}, gone: true, tidy: true},
		"HUP with a broken pipe": {how: "hangup", signals: []syscall.Signal{syscall.SIGHUP}, gone: true, tidy: true},
		"HUP under nohup": {how: "hangup", wrapper: `trap "" HUP; exec "$0"`,
			signals: []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM}, tidy: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tidy := t.TempDir() + "/tidy"
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			if c.wrapper != "" {
				cmd = exec.CommandContext(t.Context(), "sh", "-c", c.wrapper, os.Args[0])
			}
			cmd.Env = append(os.Environ(), asCommand+"="+c.how, "DAEMON_TEST_TIDY="+tidy)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // it is at work
				t.Fatal(err)
			}
			if ignores := ignoresHangups(t, cmd.Process.Pid); ignores != (c.wrapper != "") {
				t.Errorf("ignores SIGHUP: %v", ignores)
			}
			if c.gone {
				out.Close()
			}
			for _, s := range c.signals {
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait() // what it says is in the state
			status := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if status.Signaled() != (c.died != 0) || c.died != 0 && status.Signal() != c.died ||
				c.died == 0 && status.ExitStatus() != 0 {
				t.Errorf("ended with %v", cmd.ProcessState)
			}
			if _, err := os.Stat(tidy); (err == nil) != c.tidy {
				t.Errorf("tidied up: %v, want %v", err == nil, c.tidy)
			}
		})
	}
}

// ignoresHangups reads a process's signals from proc(5).
func ignoresHangups(t *testing.T, pid int) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\nSigIgn:")
	var mask uint64
	if _, err := fmt.Sscanf(rest, "%x", &mask); err != nil {
		t.Fatal(err)
	}
	return mask&(1<<(syscall.SIGHUP-1)) != 0
}
