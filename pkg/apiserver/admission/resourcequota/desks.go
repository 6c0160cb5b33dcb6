package resourcequota

import "sync"

// desks are where claims wait, one desk per namespace. Claims that come while others are being settled are settled
// together afterwards, with one write for all: a busy namespace does not fight with itself over its quotas' status. The
// zero desks are ready for use.
type desks struct {
	mu   sync.Mutex
	open map[string]*desk // those at which somebody is being served
}

type desk struct{ waiting []*claim }

// queue returns when c is settled. settle is called with c and the claims that wait beside it, by one caller per
// namespace at a time; it sets each claim's err. The first request at a free desk leads at once. Any other one waits
// for turn, without a bound of its own: settle has one (patience), and pass wakes every claim. No request waits for
// more than the batch before it and its own.
func (d *desks) queue(ns string, c *claim, settle func(batch []*claim)) {
	d.mu.Lock()
	if d.open == nil {
		d.open = map[string]*desk{}
	}
	at, busy := d.open[ns]
	if !busy {
		at = &desk{}
		d.open[ns] = at
	}
	at.waiting = append(at.waiting, c)
	d.mu.Unlock()
	if busy {
		if leads := <-c.turn; !leads {
			return
		}
	}
	batch := d.take(at)
	defer d.pass(ns, at, c, batch) // also if settle panics: nobody may wait for ever
	settle(batch)
}

func (d *desks) take(at *desk) []*claim {
	d.mu.Lock()
	defer d.mu.Unlock()
	batch := at.waiting
	at.waiting = nil
	return batch
}

// pass lets the settled go, and the first of those who came meanwhile lead. turn has room for one message, so sending
// never blocks while mu is held. An empty desk is deleted: there are as many as namespaces in which somebody waits.
func (d *desks) pass(ns string, at *desk, leader *claim, settled []*claim) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range settled {
		if c != leader {
			c.turn <- false
		}
	}
	if len(at.waiting) == 0 {
		delete(d.open, ns)
		return
	}
	at.waiting[0].turn <- true
}
