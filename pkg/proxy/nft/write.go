package nft

import (
	"context"
	"errors"
	"maps"
	"slices"

	"sigs.k8s.io/knftables"

	"bonsai/pkg/proxy"
)

// Bounds of one Apply: checks spent on finding what the kernel refuses, and services refused before that are tried again.
const (
	maxChecks  = 64
	maxRetries = 8
)

// ground is what a transaction starts from: what the books say, or, if whole, a table of which only the names in left are known
// (by object type, as nft lists them). A whole table without left is deleted first.
type ground struct {
	whole bool
	left  map[string][]string
}

// amend writes what is pending into a table that is as the books say: first what was never refused, in one transaction; then
// some of the refused services, each by itself.
func (t *Table) amend(ctx context.Context) error {
	var fresh, again []proxy.Name
	for name := range t.pending {
		if t.refused[name] {
			again = append(again, name)
		} else {
			fresh = append(fresh, name)
		}
	}
	refused, err := t.write(ctx, ground{}, fresh)
	if err != nil {
		return err
	}
	// Something of theirs may be missing in the kernel: the next Apply writes everything, which heals that.
	t.written = len(refused) == 0
	for i, name := range again { // maps are in random order, so that each has its turn
		err := errNotTried
		if i < maxRetries {
			err = t.attempt(ctx, ground{}, []proxy.Name{name}, true)
		}
		if err != nil {
			refused[name] = err
		}
	}
	return t.verdict(refused)
}

// rewrite writes the whole table over what an earlier proxy, or somebody else, left of it. Sets of clients stay, and so do their
// endpoints (session affinity). If the kernel does not take that, the table is deleted and recreated.
func (t *Table) rewrite(ctx context.Context) error {
	g := ground{whole: true}
	left, err := t.nft.ListAll(ctx)
	switch {
	case err == nil:
		g.left = left
	case !knftables.IsNotFound(err):
		t.log.Warn("Could not read the nftables table, replacing it", "family", t.ip, "err", err)
	}
	names := slices.Collect(maps.Keys(t.pending))
	refused, err := t.write(ctx, g, names)
	if err != nil && g.left != nil && ctx.Err() == nil {
		t.log.Warn("Could not write over the nftables table, replacing it", "family", t.ip, "err", err)
		refused, err = t.write(ctx, ground{whole: true}, names)
	}
	if err != nil {
		return err
	}
	return t.verdict(refused)
}

// verdict notes the refused services and reports them.
func (t *Table) verdict(refused map[proxy.Name]error) error {
	if len(refused) == 0 {
		return nil
	}
	for name, err := range refused {
		if !errors.Is(err, errNotTried) {
			t.refused[name] = true
		}
	}
	return &proxy.Refused{Services: refused}
}

// errNotTried is why a service was not written although nobody said that it cannot be.
var errNotTried = errors.New("left for the next round")

// write writes the pending parts of names. If the kernel refuses them, those that are to blame are found by dry runs and left
// out. The error is set if nothing could be written.
func (t *Table) write(ctx context.Context, g ground, names []proxy.Name) (map[proxy.Name]error, error) {
	slices.SortFunc(names, compareNames)
	first := t.attempt(ctx, g, names, true)
	if first == nil {
		t.written = true
		return map[proxy.Name]error{}, nil
	}
	if ctx.Err() != nil {
		t.written = false // the tool may have been stopped before or after its work
		return nil, first
	}
	s := &sieve{t: t, ground: g, left: maxChecks, refused: map[proxy.Name]error{}}
	if i := slices.Index(names, proxy.Name{}); i >= 0 {
		s.good, names = []proxy.Name{{}}, slices.Delete(names, i, i+1)
	}
	if err := t.attempt(ctx, g, s.good, false); err != nil {
		t.written = false
		return nil, first
	}
	s.sift(ctx, names)
	if err := t.attempt(ctx, g, s.good, true); err != nil {
		t.written = false
		return nil, err
	}
	t.written = true
	return s.refused, nil
}

// sieve parts services into those that the kernel takes together and those that it refuses.
type sieve struct {
	t       *Table
	ground  ground
	left    int // checks that may still be made
	good    []proxy.Name
	refused map[proxy.Name]error
}

// sift halves names until every refused one is alone.
func (s *sieve) sift(ctx context.Context, names []proxy.Name) {
	if len(names) == 0 {
		return
	}
	err := errNotTried
	if s.left > 0 {
		s.left--
		err = s.t.attempt(ctx, s.ground, slices.Concat(s.good, names), false)
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

// attempt runs one transaction with the pending parts of names, or only checks it. The books say afterwards what was written.
func (t *Table) attempt(ctx context.Context, g ground, names []proxy.Name, run bool) error {
	b := t.books
	if g.whole {
		b = newBooks()
	}
	tx := t.transaction(b, g, names)
	do := t.nft.Check
	if run {
		do = t.nft.Run
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
	b.keep()
	t.books = b
	for _, name := range names {
		delete(t.pending, name)
		delete(t.refused, name)
	}
	return nil
}
