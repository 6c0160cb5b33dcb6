package nftables

import "maps"

// books record what the kernel holds. Changes are planned in them first: commit makes them final once the kernel has
// them, rollback undoes them if it refused. So every change goes through the methods, which note how to undo it.
type books[K comparable] struct {
	// parts is what the kernel has, and under the zero K what is always there.
	parts map[K]Fragment
	// owners is the part that an element belongs to. If two parts claim it, the first has it and the other waits.
	owners  map[Element]K
	waiting map[K]bool
	undo    []func()
}

func newBooks[K comparable]() *books[K] {
	return &books[K]{parts: map[K]Fragment{}, owners: map[Element]K{}, waiting: map[K]bool{}}
}

// commit makes all changes since the last commit final.
func (b *books[K]) commit() { b.undo = nil }

// rollback takes the changes back, the last one first.
func (b *books[K]) rollback() {
	for i := len(b.undo) - 1; i >= 0; i-- {
		b.undo[i]()
	}
	b.undo = nil
}

// setPart notes a part; an empty one is forgotten.
func (b *books[K]) setPart(name K, f Fragment) {
	restore(b, b.parts, name)
	if f.empty() {
		delete(b.parts, name)
	} else {
		b.parts[name] = f
	}
}

func (b *books[K]) own(e Element, name K) {
	restore(b, b.owners, e)
	b.owners[e] = name
}

func (b *books[K]) disown(e Element) {
	restore(b, b.owners, e)
	delete(b.owners, e)
}

func (b *books[K]) wait(name K) {
	restore(b, b.waiting, name)
	b.waiting[name] = true
}

func (b *books[K]) stopWaiting(name K) {
	restore(b, b.waiting, name)
	delete(b.waiting, name)
}

// restore notes how to bring m[key] back.
func restore[B, K comparable, V any](b *books[B], m map[K]V, key K) {
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
func (b *books[K]) with(changes map[K]Fragment) map[K]Fragment {
	out := maps.Clone(b.parts)
	maps.Copy(out, changes)
	return out
}
