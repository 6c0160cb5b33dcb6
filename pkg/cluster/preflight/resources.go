package preflight

import (
	"fmt"
	"time"
)

// A cluster takes this much memory, in bytes, before its first pod: the control plane with a node, and each further
// node.
const (
	clusterMemory = 400 << 20
	nodeMemory    = 120 << 20
)

// memory is about memory and swap.
func memory(m Machine, n Needs) []Finding {
	need := uint64(clusterMemory + nodeMemory*(max(n.Nodes, 1)-1))
	f := Finding{Level: OK, Subject: "memory", Text: fmt.Sprintf("%d MiB available, %d MiB of swap", m.Memory>>20,
		m.Swap>>20)}
	if m.Memory < need {
		f.Level, f.Text = Warning, fmt.Sprintf(
			"%d MiB of memory are available: a cluster with %d nodes takes %d MiB before its first pod", m.Memory>>20, n.Nodes,
			need>>20)
	}
	return []Finding{f}
}

// clockSlack is how far the clock may be behind what is known: files may come from machines whose clocks differ.
const clockSlack = 10 * time.Minute

// clock is about the machine's time. Certificates begin with the moment at which they are made.
func clock(m Machine, _ Needs) []Finding {
	f := Finding{Level: OK, Subject: "clock", Text: m.Now.UTC().Format(time.RFC3339)}
	if m.Now.Add(clockSlack).Before(m.Known) {
		f = Finding{Warning, "clock", fmt.Sprintf(
			"the clock says %s, which is before %s, when files of Bonsai or of this cluster were written: certificates may "+
				"not be valid yet", f.Text, m.Known.UTC().Format(time.RFC3339)), "timedatectl set-ntp true"}
	}
	return []Finding{f}
}
