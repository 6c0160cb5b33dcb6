package dra

import (
	"context"
	"time"
)

// After a driver has been gone for wipeAfter, its ResourceSlices are deleted: nothing else would show that its devices
// are gone. Such drivers are looked for every lookEvery.
const (
	wipeAfter = 30 * time.Second
	lookEvery = 10 * time.Second
)

// Run takes away the ResourceSlices of drivers that are gone, until ctx ends. Those of the time before the kubelet was
// started have as long to register again.
func (m *Manager) Run(ctx context.Context) error {
	defer m.close()
	began, all := m.cfg.Now(), true
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if all && m.cfg.Now().Sub(began) >= wipeAfter {
			all = m.wipe(ctx, m.others()) != nil
		}
		for _, name := range m.due() {
			if m.wipe(ctx, "spec.nodeName="+m.cfg.Node+",spec.driver="+name) == nil {
				m.forget(name)
			}
		}
	}
}

// others selects the slices of drivers that are not registered.
func (m *Manager) others() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	fields := "spec.nodeName=" + m.cfg.Node
	for _, name := range sortedKeys(m.drivers) {
		fields += ",spec.driver!=" + name
	}
	return fields
}

// due are the drivers that have been gone for long enough.
func (m *Manager) due() (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range sortedKeys(m.left) {
		if m.cfg.Now().Sub(m.left[name]) >= wipeAfter {
			out = append(out, name)
		}
	}
	return out
}

func (m *Manager) wipe(ctx context.Context, fields string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := m.cfg.Client.DeleteResourceSlices(ctx, fields)
	if err != nil {
		m.cfg.Log.Warn("the ResourceSlices of drivers that are gone are still there", "fields", fields, "err", err)
	}
	return err
}

// forget notes that the slices of a driver are gone.
func (m *Manager) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.left, name)
}

// close ends the connections to all drivers.
func (m *Manager) close() {
	m.mu.Lock()
	for _, list := range m.drivers {
		for _, d := range list {
			d.stop()
			d.conn.Close() // the kubelet ends
		}
	}
	m.mu.Unlock()
	m.watches.Wait()
}
