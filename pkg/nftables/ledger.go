package nftables

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"sigs.k8s.io/knftables"
)

// Ledger brings one table of one family to what its parts should be, one part for each K and under the zero K what is
// always there. Its methods must not be called concurrently.
type Ledger[K comparable] struct {
	LedgerConfig[K]

	books *books[K]
	// pending is what parts should be and are not yet; an empty fragment is a part that is gone.
	pending map[K]Fragment
	// refused are the pending parts that the kernel would not take. They are tried apart from the others, so that these
	// cost nothing again.
	refused map[K]bool
	// written is set while the kernel is known to hold what the books say.
	written bool
	// whole is set if the last flush wrote the whole table.
	whole bool
}

// LedgerConfig is what a Ledger needs. All but Conflict is required.
type LedgerConfig[K comparable] struct {
	Tool knftables.Interface
	// Family is "ip" or "ip6".
	Family string
	// Table is the table's name; Whose is said in its comment.
	Table, Whose string
	// Entrance is the chain that stands for the whole table: if it has no rules, somebody has flushed them all.
	Entrance string
	Compare  func(a, b K) int
	// Conflict hears of a part that claims an element which owner has.
	Conflict func(part, owner K, key string)
	Log      *slog.Logger
}

// NewLedger returns a ledger of which nothing is written yet.
func NewLedger[K comparable](c LedgerConfig[K]) *Ledger[K] {
	return &Ledger[K]{LedgerConfig: c, books: newBooks[K](), pending: map[K]Fragment{}, refused: map[K]bool{}}
}

// Pending is what a part should be and is not yet, an empty fragment if it is as it should be.
func (l *Ledger[K]) Pending(part K) Fragment { return l.pending[part] }

// Retry has what was refused tried with everything else, not apart from it.
func (l *Ledger[K]) Retry() { clear(l.refused) }

// Put notes what a part should be.
func (l *Ledger[K]) Put(name K, f Fragment) {
	have := l.books.parts[name]
	if have.equal(f) {
		delete(l.pending, name)
		delete(l.refused, name)
		return
	}
	l.pending[name] = f
}

// Flush writes what was put and could not be written before. It returns the parts that the kernel refuses, which stay
// as they were, each with its reason; all others are written then. The error is set if nothing could be written.
//
// The whole table is written at first, when it is found broken (a firewall's restart flushes everything), and once
// after a part was refused, in case that somebody else's change was the reason.
func (l *Ledger[K]) Flush(ctx context.Context) (map[K]error, error) {
	if l.written && len(l.pending) == 0 && !l.intact(ctx) {
		l.Log.Warn("Somebody changed the nftables table, rewriting it", "family", l.Family, "table", l.Table)
		l.written = false
	}
	write := l.amend
	if l.whole = !l.written; l.whole {
		write = l.rewrite
	}
	refused, err := write(ctx)
	if err != nil {
		return nil, fmt.Errorf("write the nftables table %q (%s): %w", l.Table, l.Family, err)
	}
	return refused, nil
}

// Whole reports whether the last Flush wrote, or tried to, the whole table.
func (l *Ledger[K]) Whole() bool { return l.whole }

// intact reports whether the kernel still has our table. One chain is looked at, which is cheap: firewalls flush or
// delete whole tables, nobody edits single rules of ours. If the tool itself fails, there is nothing to be repaired.
func (l *Ledger[K]) intact(ctx context.Context) bool {
	rules, err := l.Tool.ListRules(ctx, l.Entrance)
	if err != nil && !knftables.IsNotFound(err) {
		l.Log.Warn("Could not check the nftables table", "family", l.Family, "err", err)
		return true
	}
	return len(rules) > 0
}

// transaction plans the way from g to the pending parts of names, and notes it in b.
func (l *Ledger[K]) transaction(b *books[K], g ground, names []K) *knftables.Transaction {
	next := map[K]Fragment{}
	for _, name := range names {
		next[name] = l.pending[name]
	}
	tx := l.Tool.NewTransaction()
	d := newDiff(tx)
	if g.whole {
		next = l.books.with(next)
		if g.left == nil {
			tx.Add(&knftables.Table{})
			tx.Delete(&knftables.Table{})
		}
		tx.Add(&knftables.Table{Comment: &l.Whose})
	}
	l.plan(b, d, next)
	d.over(g.left)
	d.write()
	return tx
}

// plan fills d with the way from what b says to next, and notes it in b.
func (l *Ledger[K]) plan(b *books[K], d *diff, next map[K]Fragment) {
	names := slices.SortedFunc(maps.Keys(next), l.Compare)
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

// release plans the removal of the elements that a part has and will not have; it reports whether there were any.
func release[K comparable](b *books[K], d *diff, name K, next Fragment) bool {
	freed := false
	for e, value := range b.parts[name].Elements {
		if b.owners[e] != name {
			continue
		}
		if v, stays := next.Elements[e]; !stays || v != value {
			d.dropElement(e, value)
			b.disown(e)
			freed = freed || !stays
		}
	}
	return freed
}

// claim plans everything else of a part and makes next that.
func (l *Ledger[K]) claim(b *books[K], d *diff, name K, next Fragment) {
	waited := b.waiting[name]
	b.stopWaiting(name)
	for e, value := range next.Elements {
		owner, taken := b.owners[e]
		switch {
		case !taken:
			b.own(e, name)
			d.addElement(e, value)
		case owner != name:
			if !waited && l.Conflict != nil {
				l.Conflict(name, owner, e.Key)
			}
			waited = true
			b.wait(name)
		}
	}
	d.parts(b.parts[name], next)
	b.setPart(name, next)
}
