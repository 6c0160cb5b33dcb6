package vm

import "testing"

// TestQuick is what is worth ten minutes a day: a machine that somebody just installed boots, gets a cluster, runs a
// Deployment, and has all of it again after a reboot.
func TestQuick(t *testing.T) {
	m := newCluster(t)
	before := must(t, m, objects)
	reboot(t, m)
	back(t, m)
	noPodTwice(t, m)
	if after := must(t, m, objects); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
