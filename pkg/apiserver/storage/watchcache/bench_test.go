package watchcache_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/etcdtest"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/storagetest"
	"bonsai/pkg/apiserver/storage/watchcache"
)

const objects = 5000

func name(i int) string { return fmt.Sprintf("ns/pod-%05d", i) }

// filled returns a cache over etcd with 5,000 objects of the size of a pod.
func filled(b *testing.B) (*compactable, storage.Draft) {
	c := newCache(b, newEtcd(b, etcdtest.Start(b), ""), watchcache.Config{})
	facts, _ := storagetest.Facts([]byte("red;"))
	d := storage.Draft{Value: []byte("red;" + strings.Repeat("x", 1700)), Facts: &facts}
	listLatest(b, c)
	var wg sync.WaitGroup
	for part := range 16 {
		wg.Go(func() {
			for i := part; i < objects; i += 16 {
				if _, err := c.Create(b.Context(), storagetest.Prefix+name(i), d); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportAllocs()
	b.ResetTimer()
	return c, d
}

func BenchmarkGet(b *testing.B) {
	c, _ := filled(b)
	b.SetParallelism(8)
	b.RunParallel(func(p *testing.PB) {
		for i := 0; p.Next(); i++ {
			if _, err := c.Get(b.Context(), storagetest.Prefix+name(i%objects), 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkList(b *testing.B) {
	c, _ := filled(b)
	for b.Loop() {
		if l := listLatest(b, c); len(l.Items) != objects {
			b.Fatal(len(l.Items))
		}
	}
}

func BenchmarkListFiltered(b *testing.B) {
	c, _ := filled(b)
	for b.Loop() {
		_, err := c.List(b.Context(), storagetest.Prefix, storage.ListOptions{Filter: func(i *storage.Item) bool {
			return i.Facts.Labels().Get("color") == "blue"
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	c, d := filled(b)
	var n atomic.Int64
	b.SetParallelism(8)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := c.Create(b.Context(), fmt.Sprintf("%sns/new-%d", storagetest.Prefix, n.Add(1)),
				d); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkWatch: one operation is one event delivered to one of 200 watchers.
func BenchmarkWatch(b *testing.B) {
	const watchers = 200
	c := newCache(b, memory.New(storagetest.Table()), watchcache.Config{})
	ctx := b.Context()
	create(b, c, "ns/a", "red;0")
	from := listLatest(b, c).Revision
	b.ReportAllocs()
	b.ResetTimer()
	events := max(1, b.N/watchers)
	var wg sync.WaitGroup
	for range watchers {
		w, err := c.Watch(ctx, storagetest.Prefix, storage.WatchOptions{Revision: from})
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			defer w.Stop()
			for seen := 0; seen < events; {
				got, err := w.Next(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				seen += len(got)
			}
		})
	}
	for i := range events {
		if _, err := c.Create(ctx, fmt.Sprintf("%sns/%d", storagetest.Prefix, i), draft("red;x")); err != nil {
			b.Fatal(err)
		}
	}
	wg.Wait()
}
