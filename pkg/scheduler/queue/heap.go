package queue

import "k8s.io/apimachinery/pkg/types"

// heap is a binary heap of items with access by pod UID.
type heap struct {
	less  func(a, b *item) bool
	items []*item
	index map[types.UID]int
}

func newHeap(less func(a, b *item) bool) *heap {
	return &heap{less: less, index: map[types.UID]int{}}
}

func (h *heap) len() int { return len(h.items) }

func (h *heap) peek() *item {
	if len(h.items) == 0 {
		return nil
	}
	return h.items[0]
}

func (h *heap) get(uid types.UID) *item {
	if i, ok := h.index[uid]; ok {
		return h.items[i]
	}
	return nil
}

func (h *heap) push(it *item) {
	h.items = append(h.items, it)
	h.index[it.Pod.UID] = len(h.items) - 1
	h.up(len(h.items) - 1)
}

func (h *heap) pop() *item {
	it := h.items[0]
	h.removeAt(0)
	return it
}

func (h *heap) remove(uid types.UID) *item {
	i, ok := h.index[uid]
	if !ok {
		return nil
	}
	it := h.items[i]
	h.removeAt(i)
	return it
}

// fix restores the order after the item's key changed.
func (h *heap) fix(uid types.UID) {
	if i, ok := h.index[uid]; ok && !h.down(i) {
		h.up(i)
	}
}

func (h *heap) removeAt(i int) {
	last := len(h.items) - 1
	delete(h.index, h.items[i].Pod.UID)
	if i != last {
		h.items[i] = h.items[last]
		h.index[h.items[i].Pod.UID] = i
	}
	h.items[last] = nil
	h.items = h.items[:last]
	if i < last && !h.down(i) {
		h.up(i)
	}
}

func (h *heap) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.index[h.items[i].Pod.UID], h.index[h.items[j].Pod.UID] = i, j
}

func (h *heap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(h.items[i], h.items[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *heap) down(i int) bool {
	start := i
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if right := child + 1; right < len(h.items) && h.less(h.items[right], h.items[child]) {
			child = right
		}
		if !h.less(h.items[child], h.items[i]) {
			break
		}
		h.swap(i, child)
		i = child
	}
	return i > start
}
