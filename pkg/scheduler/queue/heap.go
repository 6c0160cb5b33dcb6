package queue

// heap is a binary heap of items: the least one, by less, is on top. An item is in one heap at most and knows its place
// there, so that taking it out needs no search: O(log n). The mutex of the queue guards it.
type heap struct {
	less  func(a, b *item) bool
	items []*item
}

func newHeap(less func(a, b *item) bool) *heap { return &heap{less: less} }

func (h *heap) len() int { return len(h.items) }

func (h *heap) peek() *item {
	if len(h.items) == 0 {
		return nil
	}
	return h.items[0]
}

func (h *heap) push(it *item) {
	it.in, it.at = h, len(h.items)
	h.items = append(h.items, it)
	h.up(it.at)
}

func (h *heap) pop() *item {
	it := h.items[0]
	h.remove(it)
	return it
}

// remove takes out an item that is in h.
func (h *heap) remove(it *item) {
	i, last := it.at, len(h.items)-1
	it.in = nil
	if i != last {
		h.items[i] = h.items[last]
		h.items[i].at = i
	}
	h.items[last] = nil
	h.items = h.items[:last]
	if i < last && !h.down(i) {
		h.up(i)
	}
}

// fix restores the order after the item's key changed.
func (h *heap) fix(it *item) {
	if !h.down(it.at) {
		h.up(it.at)
	}
}

func (h *heap) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].at, h.items[j].at = i, j
}

// up and down move the item at i to its place; down reports whether it moved.
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
