package watchcache_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/storagetest"
	"bonsai/pkg/apiserver/storage/watchcache"
)

// TestPastIsRight compares exact lists at every revision of a random history, in random order, with the memory
// storage's.
func TestPastIsRight(t *testing.T) {
	t.Parallel()
	const steps, keys = 400, 12
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	b := memory.New(storagetest.Table())
	c := newCache(t, b, watchcache.Config{})
	ctx := deadline(t)
	from := listLatest(t, c).Revision
	for i := range steps {
		name := fmt.Sprintf("ns/%d", random.IntN(keys))
		key := storagetest.Prefix + name
		value := draft(fmt.Sprintf("red;%d", i))
		// Each step fails where the key is not in the state it needs; that is fine.
		switch random.IntN(4) {
		case 0:
			_, _ = c.Delete(ctx, key, func(*storage.Item) error { return nil })
		case 1:
			_, _ = c.Update(ctx, key, func(*storage.Item) (storage.Draft, error) { return value, nil })
		case 2:
			_, _ = c.Create(ctx, key, value)
		case 3: // what another resource writes moves the revision too
			_, _ = c.Create(ctx, "/registry/others/"+fmt.Sprint(i), value)
		}
	}
	to := listLatest(t, c).Revision
	for range 2 * steps {
		revision := from + random.Int64N(to-from+1)
		opts := storage.ListOptions{Match: storage.Exact, Revision: revision, Limit: random.Int64N(keys)}
		have, err := c.List(ctx, storagetest.Prefix, opts)
		if err != nil {
			t.Fatal(err)
		}
		want, err := b.List(ctx, storagetest.Prefix, opts)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(lines(have), lines(want)) || have.Remaining != want.Remaining ||
			have.Revision != want.Revision {
			t.Fatalf("at revision %d the cache lists\n%v, the storage\n%v", revision, lines(have), lines(want))
		}
	}
}

func lines(l *storage.List) (out []string) {
	for _, i := range l.Items {
		out = append(out, fmt.Sprintf("%s %d %s", i.Key, i.Revision, i.Value()))
	}
	return out
}
