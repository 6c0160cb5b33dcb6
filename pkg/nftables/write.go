package nftables

import (
	"context"
	"errors"
	"maps"
	"slices"

	"sigs.k8s.io/knftables"
)

// Bounds of one flush: dry runs spent on finding what the kernel refuses, and formerly refused parts that are tried
// again.
const (
	maxChecks  = 64
	maxRetries = 8
)

// ground is what a transaction starts from: the state in the books or, if whole, a table that is known only by the
// names in left (by object type, as nft lists them). A whole table without left is deleted first.
type ground struct {
	whole bool
	left  map[string][]string
}

// amend writes what is pending into a table that is as the books say: first what was never refused, in one transaction;
// then some of the refused parts, each in its own.
func (l *Ledger[K]) amend(ctx context.Context) (map[K]error, error) {
	var fresh, again []K
	for name := range l.pending {
		if l.refused[name] {
			again = append(again, name)
		} else {
			fresh = append(fresh, name)
		}
	}
	refused, err := l.write(ctx, ground{}, fresh)
	if err != nil {
		return nil, err
	}
	// Something that they refer to may be missing in the kernel: the next flush writes everything, which repairs that.
	l.written = len(refused) == 0
	for i, name := range again { // maps are in random order, so that each has its turn
		err := errNotTried
		if i < maxRetries {
			err = l.attempt(ctx, ground{}, []K{name}, true)
		}
		if err != nil {
			refused[name] = err
		}
	}
	l.note(refused)
	return refused, nil
}

// rewrite writes the whole table over what an earlier proxy, or another program, left of it. Sets of clients stay, and
// so their endpoints do too (session affinity). If the kernel does not take that, the table is deleted and recreated.
func (l *Ledger[K]) rewrite(ctx context.Context) (map[K]error, error) {
	g := ground{whole: true}
	left, err := l.Tool.ListAll(ctx)
	switch {
	case err == nil:
		g.left = left
	case !knftables.IsNotFound(err):
		l.Log.Warn("Could not read the nftables table, replacing it", "family", l.Family, "err", err)
	}
	names := slices.Collect(maps.Keys(l.pending))
	refused, err := l.write(ctx, g, names)
	if err != nil && g.left != nil && ctx.Err() == nil {
		l.Log.Warn("Could not write over the nftables table, replacing it", "family", l.Family, "err", err)
		refused, err = l.write(ctx, ground{whole: true}, names)
	}
	if err != nil {
		return nil, err
	}
	l.note(refused)
	return refused, nil
}

// note records which parts the kernel refused.
func (l *Ledger[K]) note(refused map[K]error) {
	for name, err := range refused {
		if !errors.Is(err, errNotTried) {
			l.refused[name] = true
		}
	}
}

// errNotTried is why a part was not written although the kernel did not refuse it.
var errNotTried = errors.New("left for the next round")

// write writes the pending parts of names. If the kernel refuses them, dry runs find those that are to blame, which are
// left out. The error is set if nothing could be written.
func (l *Ledger[K]) write(ctx context.Context, g ground, names []K) (map[K]error, error) {
	slices.SortFunc(names, l.Compare)
	first := l.attempt(ctx, g, names, true)
	if first == nil {
		l.written = true
		return map[K]error{}, nil
	}
	if ctx.Err() != nil {
		l.written = false // the tool may have been stopped before or after its work
		return nil, first
	}
	s := &sieve[K]{l: l, ground: g, left: maxChecks, refused: map[K]error{}}
	var common K
	if i := slices.Index(names, common); i >= 0 {
		s.good, names = []K{common}, slices.Delete(names, i, i+1)
	}
	if err := l.attempt(ctx, g, s.good, false); err != nil {
		l.written = false
		return nil, first
	}
	s.sift(ctx, names)
	if err := l.attempt(ctx, g, s.good, true); err != nil {
		l.written = false
		return nil, err
	}
	l.written = true
	return s.refused, nil
}

// sieve divides parts into those that the kernel takes together and those that it refuses.
type sieve[K comparable] struct {
	l       *Ledger[K]
	ground  ground
	left    int // checks that may still be made
	good    []K
	refused map[K]error
}

// sift halves names until every refused one is alone.
func (s *sieve[K]) sift(ctx context.Context, names []K) {
	if len(names) == 0 {
		return
	}
	err := errNotTried
	if s.left > 0 {
		s.left--
		err = s.l.attempt(ctx, s.ground, slices.Concat(s.good, names), false)
	}
	switch {
	case err == nil:
		s.good = append(s.good, names...)
	case len(names) == 1 || errors.Is(err, errNotTried):
		for _, name := range names {
			s.refused[name] = err
		}
	default:
		s.sift(ctx, names[:len(names)/2])
		s.sift(ctx, names[len(names)/2:])
	}
}

// attempt runs one transaction with the pending parts of names, or only checks it. Afterwards the books have what was
// written; after a failure or a check they are as before.
func (l *Ledger[K]) attempt(ctx context.Context, g ground, names []K, run bool) error {
	b := l.books
	if g.whole {
		b = newBooks[K]()
	}
	tx := l.transaction(b, g, names)
	do := l.Tool.Check
	if run {
		do = l.Tool.Run
	}
	if tx.NumOperations() > 0 {
		if err := do(ctx, tx); err != nil {
			b.rollback()
			return err
		}
	}
	if !run {
		b.rollback()
		return nil
	}
	b.commit()
	l.books = b
	for _, name := range names {
		delete(l.pending, name)
		delete(l.refused, name)
	}
	return nil
}
