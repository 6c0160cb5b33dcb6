package machine

import (
	"os"

	"github.com/vishvananda/netlink"

	"bonsai/pkg/cluster/host/cgroup"
)

// HasMarked reports whether anything on this machine carries a cluster's mark: its link, its network namespace or its
// cgroups. An error counts as nothing there.
func HasMarked(mark string) bool {
	if _, err := netlink.LinkByName(mark); err == nil {
		return true
	}
	if _, err := os.Stat("/run/netns/" + mark); err == nil {
		return true
	}
	groups, err := cgroup.Find(mark)
	return err == nil && groups.Exist()
}
