package nft

import (
	"maps"

	"bonsai/pkg/proxy"
)

// books say what the kernel holds, and take back what was planned and could not be written. Every change since the last keep goes
// through their methods.
type books struct {
	// parts is what each service has, and under the zero Name what is always there.
	parts map[proxy.Name]fragment
	// owners tells whose an element is. Of two services that claim one, the first keeps it and the other waits.
	owners  map[element]proxy.Name
	waiting map[proxy.Name]bool
	undo    []func()
}

func newBooks() *books {
	return &books{parts: map[proxy.Name]fragment{}, owners: map[element]proxy.Name{}, waiting: map[proxy.Name]bool{}}
}

// keep makes the changes final.
func (b *books) keep() { b.undo = nil }

// rollback takes the changes back, the last one first.
func (b *books) rollback() {
	for i := len(b.undo) - 1; i >= 0; i-- {
		b.undo[i]()
	}
	b.undo = nil
}

// setPart notes a service's part; an empty one is forgotten.
func (b *books) setPart(name proxy.Name, f fragment) {
	restore(b, b.parts, name)
	if f.empty() {
		delete(b.parts, name)
	} else {
		b.parts[name] = f
	}
}

func (b *books) own(e element, name proxy.Name) {
	restore(b, b.owners, e)
	b.owners[e] = name
}

func (b *books) disown(e element) {
	restore(b, b.owners, e)
	delete(b.owners, e)
}

func (b *books) wait(name proxy.Name) {
	restore(b, b.waiting, name)
	b.waiting[name] = true
}

func (b *books) stopWaiting(name proxy.Name) {
	restore(b, b.waiting, name)
	delete(b.waiting, name)
}

// restore notes how to bring m[key] back.
func restore[K comparable, V any](b *books, m map[K]V, key K) {
	old, had := m[key]
	b.undo = append(b.undo, func() {
		if had {
			m[key] = old
		} else {
			delete(m, key)
		}
	})
}

// with returns the parts and, in their places, the changes.
func (b *books) with(changes map[proxy.Name]fragment) map[proxy.Name]fragment {
	out := maps.Clone(b.parts)
	maps.Copy(out, changes)
	return out
}
