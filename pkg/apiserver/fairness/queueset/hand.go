package queueset

// MaxHand is the most queues that a flow is dealt: what validation allows (60 bits of a hash, and no more than there
// are queues).
const MaxHand = 15

// hand deals cards of a deck of cards numbered from 0, none twice, as hash says: each hand is as likely as any other if
// the hash is random.
type hand struct {
	hash uint64
	deck int
	// dealt are the cards so far, in order.
	dealt [MaxHand]int
	n     int
}

// deal is the next card. There are at most MaxHand, and as many as are in the deck.
func (h *hand) deal() int {
	left := uint64(h.deck - h.n)
	card := int(h.hash % left)
	h.hash /= left
	// card counts those that are left: skip the ones that are dealt.
	at := 0
	for at < h.n && h.dealt[at] <= card {
		at++
		card++
	}
	copy(h.dealt[at+1:h.n+1], h.dealt[at:h.n])
	h.dealt[at] = card
	h.n++
	return card
}
