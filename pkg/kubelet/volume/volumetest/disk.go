package volumetest

import (
	"os"
	"path/filepath"
	"testing"

	"bonsai/pkg/loopdevice"
)

// Disk is the path of a block device of 16 MiB, a file's, that is gone with the test. It needs root.
func Disk(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 16<<20); err != nil {
		t.Fatal(err)
	}
	if err := loopdevice.Attach(file); err != nil {
		t.Skip("SKIPPED: this machine has no loop devices: ", err)
	}
	t.Cleanup(func() {
		if err := loopdevice.Detach(file); err != nil {
			t.Error(err)
		}
	})
	device, err := loopdevice.Of(file)
	if err != nil {
		t.Fatal(err)
	}
	return device
}
