package nft

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"sigs.k8s.io/knftables"
)

// ledger brings one table of one family to what its parts should be, one part for each K and under the zero K what is always there.
// Its methods must not be called concurrently.
type ledger[K comparable] struct {
	nft knftables.Interface
	ip  string // "ip" or "ip6"
	// name is the table's; whose is said in its comment.
	name, whose string
	// entrance is the chain that stands for the whole table in intact.
	entrance string
	compare  func(a, b K) int
	// conflict hears of a part that claims an element which owner has. It may be nil.
	conflict func(part, owner K, key string)
	log      *slog.Logger

	books *books[K]
	// pending is what parts should be and are not yet; an empty fragment is a part that is gone.
	pending map[K]fragment
	// refused are the pending parts that the kernel would not take. They are tried apart from the others, so that these cost
	// nothing again.
	refused map[K]bool
	// written is set while the kernel is known to hold what the books say.
	written bool
}

// reset makes it a ledger of which nothing is written yet.
func (l *ledger[K]) reset() {
	l.books, l.pending, l.refused = newBooks[K](), map[K]fragment{}, map[K]bool{}
}

// put notes what a part should be.
func (l *ledger[K]) put(name K, f fragment) {
	have := l.books.parts[name]
	if have.equal(f) {
		delete(l.pending, name)
		delete(l.refused, name)
		return
	}
	l.pending[name] = f
}

// flush writes what was put and could not be written before. It returns the parts that the kernel refuses, which stay as they were,
// each with its reason; all others are written then. The error is set if nothing could be written.
//
// The whole table is written at first, when it is found broken (a firewall's restart flushes everything), and once
// after a part was refused, in case that somebody else's change was the reason.
func (l *ledger[K]) flush(ctx context.Context) (map[K]error, error) {
	if l.written && len(l.pending) == 0 && !l.intact(ctx) {
		l.log.Warn("Somebody changed the nftables table, rewriting it", "family", l.ip, "table", l.name)
		l.written = false
	}
	write := l.amend
	if !l.written {
		write = l.rewrite
	}
	refused, err := write(ctx)
	if err != nil {
		return nil, fmt.Errorf("write the nftables table %q (%s): %w", l.name, l.ip, err)
	}
	return refused, nil
}

// intact tells whether the kernel still has our table. One chain is looked at, which is cheap: firewalls flush or delete whole
// tables, nobody edits single rules of ours. If the tool itself fails, there is nothing to be repaired.
func (l *ledger[K]) intact(ctx context.Context) bool {
	rules, err := l.nft.ListRules(ctx, l.entrance)
	if err != nil && !knftables.IsNotFound(err) {
		l.log.Warn("Could not check the nftables table", "family", l.ip, "err", err)
		return true
	}
	return len(rules) > 0
}

// transaction plans the way from g to the pending parts of names, and notes it in b.
func (l *ledger[K]) transaction(b *books[K], g ground, names []K) *knftables.Transaction {
	next := map[K]fragment{}
	for _, name := range names {
		next[name] = l.pending[name]
	}
	tx := l.nft.NewTransaction()
	d := newDiff(tx)
	if g.whole {
		next = l.books.with(next)
		if g.left == nil {
			tx.Add(&knftables.Table{})
			tx.Delete(&knftables.Table{})
		}
		tx.Add(&knftables.Table{Comment: &l.whose})
	}
	l.plan(b, d, next)
	d.over(g.left)
	d.write()
	return tx
}

// plan fills d with the way from what b says to next, and notes it in b.
func (l *ledger[K]) plan(b *books[K], d *diff, next map[K]fragment) {
	names := slices.SortedFunc(maps.Keys(next), l.compare)
	freed := false
	for _, name := range names {
		freed = release(b, d, name, next[name]) || freed
	}
	if freed {
		for name := range b.waiting {
			if _, ok := next[name]; !ok {
				next[name] = b.parts[name]
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		l.claim(b, d, name, next[name])
	}
}

// release plans the removal of the elements that a part has and will not have; it tells whether there were any.
func release[K comparable](b *books[K], d *diff, name K, next fragment) bool {
	freed := false
	for e, value := range b.parts[name].elements {
		if b.owners[e] != name {
			continue
		}
		if v, stays := next.elements[e]; !stays || v != value {
			d.dropElement(e, value)
			b.disown(e)
			freed = freed || !stays
		}
	}
	return freed
}

// claim plans everything else of a part and makes next that.
func (l *ledger[K]) claim(b *books[K], d *diff, name K, next fragment) {
	waited := b.waiting[name]
	b.stopWaiting(name)
	for e, value := range next.elements {
		owner, taken := b.owners[e]
		switch {
		case !taken:
			b.own(e, name)
			d.addElement(e, value)
		case owner != name:
			if !waited && l.conflict != nil {
				l.conflict(name, owner, e.key)
			}
			waited = true
			b.wait(name)
		}
	}
	d.parts(b.parts[name], next)
	b.setPart(name, next)
}
