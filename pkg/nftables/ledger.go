package nftables

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"sigs.k8s.io/knftables"
)

// Ledger brings one table of one family to what its parts should be: one part for each K, and under the zero K what
// always exists. Its methods must not be called concurrently.
type Ledger[K comparable] struct {
	LedgerConfig[K]

	books *books[K]
	// pending has the parts that are not yet as they should be; an empty fragment is a part that is gone.
	pending map[K]Fragment
	// refused has the pending parts that the kernel did not take. They are tried apart from the others, so that these
	// are written in one transaction.
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
	// Table is the table's name; its comment says Whose it is.
	Table, Whose string
	// Entrance is the chain that stands for the whole table: if it has no rules, they have all been flushed.
	Entrance string
	Compare  func(a, b K) int
	// Conflict, if set, receives a part that claims an element which owner has.
	Conflict func(part, owner K, key string)
	Log      *slog.Logger
}

// NewLedger returns a ledger that has written nothing yet.
func NewLedger[K comparable](c LedgerConfig[K]) *Ledger[K] {
	return &Ledger[K]{LedgerConfig: c, books: newBooks[K](), pending: map[K]Fragment{}, refused: map[K]bool{}}
}

// Pending returns what a part should be and is not yet, an empty fragment if it is as it should be.
func (l *Ledger[K]) Pending(part K) Fragment { return l.pending[part] }

// Retry makes the next Flush try refused parts together with everything else.
func (l *Ledger[K]) Retry() { clear(l.refused) }

// Put records what a part should be.
func (l *Ledger[K]) Put(name K, f Fragment) {
	have := l.books.parts[name]
	if have.equal(f) {
		delete(l.pending, name)
		delete(l.refused, name)
		return
	}
	l.pending[name] = f
}

// Flush writes what was put, or could not be written before. It returns the parts that the kernel refuses, which stay
// as they were, each with its reason; all others are written then. The error is set if nothing could be written.
//
// The whole table is written at first, when it is found broken (the restart of a firewall flushes everything), and once
// after a part was refused, in case another program's change was the reason.
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

// intact reports whether the kernel still has our table. It looks at one chain, which is cheap: firewalls flush or
// delete whole tables and do not edit single rules of ours. If the tool itself fails, there is nothing to repair.
func (l *Ledger[K]) intact(ctx context.Context) bool {
	rules, err := l.Tool.ListRules(ctx, l.Entrance)
	if err != nil && !knftables.IsNotFound(err) {
		l.Log.Warn("Could not check the nftables table", "family", l.Family, "err", err)
		return true
	}
	return len(rules) > 0
}

// transaction plans the changes from g to the pending parts of names, and records them in b.
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

// plan fills d with the changes from the state in b to next, and records them in b. Elements are released before any is
// claimed, so that an element can move from one part to another in one transaction. Parts that wait for a released
// element join the plan.
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

// claim plans everything else about a part and records next as its state. An element that another part owns is left
// out, and the part waits for it.
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
