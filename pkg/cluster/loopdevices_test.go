package cluster

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFreeLoopDevices: of the machine's loop devices those are freed that hold a file in the data directory, and no others.
func TestFreeLoopDevices(t *testing.T) {
	c := Default(t.TempDir(), "")
	ours, others := filepath.Join(c.DataDir, "nodes", "n1", "disk"), filepath.Join(t.TempDir(), "disk")
	if err := c.freeLoopDevices(); err != nil {
		t.Errorf("without any: %v", err)
	}
	our, other := attachLoop(t, ours), attachLoop(t, others)
	if err := c.freeLoopDevices(); err != nil {
		t.Fatal(err)
	}
	if _, err := loopStatus(our); err != unix.ENXIO {
		t.Errorf("the loop device of the cluster's file is not free: %v", err)
	}
	if _, err := loopStatus(other); err != nil {
		t.Errorf("the loop device of another file: %v", err)
	}
	c.DataDir = filepath.Join(c.DataDir, "none")
	if err := c.freeLoopDevices(); err != nil {
		t.Errorf("without a data directory: %v", err)
	}
}

// attachLoop has a loop device hold a new file at path until the test ends, and returns the device.
func attachLoop(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		t.Skip("SKIPPED: this machine has no loop devices: ", err)
	}
	defer control.Close()
	for range 10 { // others may take the one that was found
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			t.Skip("SKIPPED: this machine has no loop devices: ", err)
		}
		name := filepath.Join("/dev", "loop"+strconv.Itoa(n))
		device, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Skip("SKIPPED: this machine has no loop devices: ", err)
		}
		defer device.Close()
		if err := unix.IoctlLoopConfigure(int(device.Fd()), &unix.LoopConfig{Fd: uint32(file.Fd())}); err != nil {
			continue
		}
		t.Cleanup(func() {
			if err := freeLoopDevice(name); err != nil {
				t.Error(err)
			}
		})
		return name
	}
	t.Fatal("no free loop device")
	return ""
}
