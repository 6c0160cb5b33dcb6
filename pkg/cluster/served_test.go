package cluster

import (
	"io"
	"os"
	"strings"
	"testing"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/cluster/snapshot"
	"bonsai/pkg/cluster/systemd"
)

// TestRestoreServed: a cluster that a service manager runs is not restored, and goes on; one that has ended is.
func TestRestoreServed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	emptyMachine(t)
	c := plantest.Config(t)
	saveStarted(t, c)
	if err := snapshot.Copy(t.Context(), c.DataDir, c.Layout().Snapshot("clean")); err != nil {
		t.Fatal(err)
	}
	restore := func() error {
		_, err := RestoreSnapshot(t.Context(), machine.Home(t.TempDir()), c.DataDir, "clean", false, io.Discard)
		return err
	}
	if err := os.MkdirAll(c.Layout().Run(), 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := datadir.Lock(c.Layout().Lock())
	if err != nil {
		t.Fatal(err)
	}
	again := "bonsai --data-dir " + c.DataDir + " snapshot restore clean"
	if err := host.WriteFile(c.Layout().Service(), []byte("bonsai@dev.service")); err != nil {
		t.Fatal(err)
	}
	want := "runs as the systemd unit bonsai@dev.service. Run first: systemctl stop bonsai@dev.service; then: " +
		again + "; then: systemctl start bonsai@dev.service"
	if err := restore(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a unit's: %v", err)
	}
	if err := checkNotServed(c, ""); err == nil ||
		!strings.Contains(err.Error(), "Run: systemctl restart bonsai@dev.service") {
		t.Errorf("a unit's, to be restarted: %v", err)
	}
	if err := systemd.Note(c.Layout().Service(), systemd.Notifier{}); err != nil {
		t.Fatal(err)
	}
	if err := restore(); err == nil ||
		!strings.Contains(err.Error(),
			"runs under a service manager (bonsai start --foreground). Stop that service first, then run "+again) {
		t.Errorf("another service manager's: %v", err)
	}
	if err := os.Remove(c.Layout().Service()); err != nil {
		t.Fatal(err)
	}
	if err := checkNotServed(c, again); err != nil {
		t.Errorf("a supervisor in the background: %v", err)
	}
	if err := host.WriteFile(c.Layout().Service(), nil); err != nil {
		t.Fatal(err)
	}
	held.Close()
	if err := restore(); err != nil {
		t.Errorf("of a service that was killed: %v", err)
	}
}
