package vm

import (
	"context"
	"testing"
	"time"
)

// clusters is where a machine's clusters are. dataDisk is its second disk, through the device mapper, mounted there, so
// that a test can let it fail.
const (
	clusters  = "/var/lib/bonsai-clusters"
	dataSize  = 4 << 30
	makeData  = `set -e; s=$(blockdev --getsz /dev/vdc); dmsetup create data --table "0 $s linear /dev/vdc 0"; mkfs.ext4 -q /dev/mapper/data; mkdir -p ` + clusters + `; ` + mountData
	mountData = "mount -o errors=remount-ro /dev/mapper/data " + clusters
	// diskWell, diskFails and diskHangs change what the disk does: what it should, errors for writes, nothing.
	diskWell  = `set -e; s=$(blockdev --getsz /dev/vdc); dmsetup suspend --nolockfs --noflush data; dmsetup load data --table "0 $s linear /dev/vdc 0"; dmsetup resume data`
	diskFails = `set -e; s=$(blockdev --getsz /dev/vdc); modprobe dm-flakey; dmsetup suspend --nolockfs --noflush data; dmsetup load data --table "0 $s flakey /dev/vdc 0 0 3600 1 error_writes"; dmsetup resume data`
	diskHangs = `set -e; s=$(blockdev --getsz /dev/vdc); modprobe dm-delay; dmsetup suspend --nolockfs --noflush data; dmsetup load data --table "0 $s delay /dev/vdc 0 0 /dev/vdc 0 600000"; dmsetup resume data`
)

// newClusterOnDisk is newCluster with the clusters on a disk of their own.
func newClusterOnDisk(t *testing.T) *Machine {
	t.Helper()
	m := newMachine(t, func(c *Config) { c.Disks = []int64{dataSize} })
	must(t, m, makeData)
	cluster(t, m)
	return m
}

// TestDisk: a cluster outlives what a disk does. It goes on by itself when the disk does; after errors, which take the
// file system away, it goes on when somebody has mounted it again. What was acknowledged is there, and new pods run.
func TestDisk(t *testing.T) {
	m := newClusterOnDisk(t)
	clients := startClients(t, m)
	t.Run("full", func(t *testing.T) {
		// First less than the kubelet wants free (host.LeastSpace, in percent), then nothing at all.
		must(t, m, "free=$(df --output=avail -BM "+clusters+" | tail -1 | tr -dc 0-9); "+
			"dd if=/dev/zero of="+clusters+"/filler bs=1M count=$((free - 80)) && sync")
		eventually(t, m, condition("DiskPressure"), "True")
		must(t, m, "dd if=/dev/zero of="+clusters+"/rest bs=1M 2>/dev/null; sync; df "+clusters)
		eventually(t, m, "bonsai status --name try 2>&1; true", "the disk of "+clusters+"/try")
		must(t, m, "rm "+clusters+"/filler "+clusters+"/rest")
		back(t, m)
		eventually(t, m, condition("DiskPressure"), "False")
		newPods(t, m)
	})
	t.Run("hangs", func(t *testing.T) {
		must(t, m, diskHangs)
		<-time.After(3 * time.Minute)                         // longer than every lease
		must(t, m, "ps -eo stat,comm | grep '^D.*jbd2/dm-0'") // the file system waits for the disk
		must(t, m, diskWell)
		back(t, m)
		newPods(t, m)
	})
	t.Run("errors", func(t *testing.T) {
		must(t, m, diskFails)
		// Linux 6.1 says that the file system is read-only, 6.12 that there was an I/O error.
		eventually(t, m, "touch "+clusters+"/x$RANDOM 2>/dev/null || echo refused", "refused")
		t.Logf("what status says: %s", must(t, m, "bonsai status --name try 2>&1; "+isReady+"; true"))
		must(t, m, diskWell)
		must(t, m, "systemctl stop "+unit)
		if left := must(t, m, "pgrep -a bonsai; find /sys/fs/cgroup -name 'bonsai-*'; grep "+clusters+"/ /proc/mounts; true"); left != "" {
			t.Errorf("left after the stop: %s", left)
		}
		must(t, m, "umount "+clusters+" && { e2fsck -fy /dev/mapper/data || [ $? -lt 4 ]; } && "+mountData+" && systemctl start "+unit)
		back(t, m)
		newPods(t, m)
	})
	clients()
}

// TestClock: a cluster outlives a machine that sleeps, and clocks that jump.
func TestClock(t *testing.T) {
	m := newCluster(t)
	clients := startClients(t, m)
	for _, c := range []struct {
		name string
		jump func(*testing.T)
	}{
		{"suspended to memory", func(t *testing.T) {
			before := must(t, m, "cat /proc/uptime; systemctl --no-block suspend")
			<-time.After(2 * time.Minute)
			within(t, m.WakeUp)
			within(t, func(ctx context.Context) error {
				return until(ctx, time.Second, "the machine answers again", func() (bool, string) {
					out, err := m.attempt(ctx, "true")
					return err == nil, out
				})
			})
			t.Logf("uptime before: %s, after: %s", before, must(t, m, "cat /proc/uptime"))
			eventually(t, m, "journalctl -b -k | grep -F 'PM: suspend exit'", "suspend exit")
		}},
		{"paused by its host", func(t *testing.T) {
			within(t, m.Pause)
			<-time.After(2 * time.Minute)
			within(t, m.Resume)
		}},
		{"three hours forward", func(t *testing.T) { must(t, m, "date -s '+3 hours'") }},
		{"two hours back", func(t *testing.T) { must(t, m, "date -s '-2 hours'") }},
		{"a hundred days forward", func(t *testing.T) { must(t, m, "date -s '+100 days'") }},
		{"a hundred days back", func(t *testing.T) { must(t, m, "date -s '-100 days'") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.jump(t)
			back(t, m)
			newPods(t, m)
		})
	}
	clients()
}
