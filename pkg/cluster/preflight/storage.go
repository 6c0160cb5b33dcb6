package preflight

import (
	"fmt"
	"slices"

	"bonsai/pkg/cluster/host/kernel"
)

// storage is about the file system of the data directory.
func storage(m Machine, _ Needs) []Finding {
	const subject = "data directory"
	d := m.Data
	noOverlays := slices.ContainsFunc(m.Kernel.Lacks, func(l kernel.Lack) bool { return l.Module == "overlay" })
	var found []Finding
	add := func(level Level, format string, args ...any) {
		found = append(found, Finding{Level: level, Subject: subject, Text: fmt.Sprintf(format, args...)})
	}
	switch {
	case d.OnOverlay:
		add(Note, "%s is on an overlay, on which the kernel mounts no other: images are copied, which takes time and "+
			"space. Another file system is faster (--data-dir)", d.Dir)
	case d.Overlay != nil && !noOverlays:
		add(Missing, "the kernel mounts no overlay on the %s of %s, and images need that: %v%s", d.Type, d.Dir, d.Overlay,
			overlayHint(d.Type))
	}
	if d.NoDev {
		add(Note, "%s is mounted nodev: block volumes below it do not work", d.Dir)
	}
	if d.NoExec {
		add(Warning, "%s is mounted noexec: programs in volumes do not run", d.Dir)
	}
	if d.NoSuid {
		add(Note, "%s is mounted nosuid: programs in volumes do not change the user", d.Dir)
	}
	if d.LostAtReboot {
		add(Warning, "%s is on a %s: a reboot loses the cluster", d.Dir, d.Type)
	}
	if len(found) == 0 {
		add(OK, "%s, %s, %d MiB free", d.Dir, d.Type, d.Free>>20)
	}
	return found
}

// overlayHint says what is known of file systems that hold no overlays.
func overlayHint(fileSystem string) string {
	switch fileSystem {
	case "xfs":
		return ". An xfs made with ftype=0 holds none: choose another with --data-dir, or make it with mkfs.xfs -n ftype=1"
	case "zfs":
		return ". ZFS holds them since 2.2: choose another with --data-dir, or update"
	}
	return ". Choose another file system with --data-dir, such as ext4"
}
