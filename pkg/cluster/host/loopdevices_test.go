package host

import (
	"os"
	"path/filepath"
	"testing"

	"bonsai/pkg/loopdevice"
)

// TestFreeLoopDevices: of the machine's loop devices those are freed that hold a file in the data directory, and no
// others.
func TestFreeLoopDevices(t *testing.T) {
	dir := t.TempDir()
	ours, others := filepath.Join(dir, "nodes", "n1", "disk"), filepath.Join(t.TempDir(), "disk")
	if err := FreeLoopDevices(dir); err != nil {
		t.Errorf("without any: %v", err)
	}
	holdFile(t, ours)
	holdFile(t, others)
	if err := FreeLoopDevices(dir); err != nil {
		t.Fatal(err)
	}
	if device, err := loopdevice.Of(ours); device != "" || err != nil {
		t.Errorf("%s still holds the cluster's file, %v", device, err)
	}
	if device, err := loopdevice.Of(others); device == "" || err != nil {
		t.Errorf("another file is not held any more, %v", err)
	}
	if err := FreeLoopDevices(filepath.Join(dir, "none")); err != nil {
		t.Errorf("without a data directory: %v", err)
	}
}

// holdFile has a loop device hold a new file at path until the test ends.
func holdFile(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := loopdevice.Attach(path); err != nil {
		t.Skip("SKIPPED: this machine has no loop devices: ", err)
	}
	t.Cleanup(func() {
		if err := loopdevice.Detach(path); err != nil {
			t.Error(err)
		}
	})
}
