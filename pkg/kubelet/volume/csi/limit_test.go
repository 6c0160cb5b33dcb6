package csi

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/apiclient"
)

// TestPeriodically: a CSIDriver that comes, changes and goes says how often.
func TestPeriodically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes := watch.NewFake()
		object := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return &storagev1.CSIDriverList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return changes, nil
			},
		}, apiclient.PlainListWatch{})
		driver := func(seconds *int64) *storagev1.CSIDriver {
			return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "d", ResourceVersion: "2"},
				Spec: storagev1.CSIDriverSpec{NodeAllocatableUpdatePeriodSeconds: seconds}}
		}
		ctx, cancel := context.WithCancel(t.Context())
		did, done := 0, make(chan struct{})
		go func() {
			defer close(done)
			periodically(ctx, object, func() { did++ })
		}()
		for _, c := range []struct {
			what   string
			change func()
			want   int // in 65 seconds
		}{
			{"no object", func() {}, 0},
			{"one without a period", func() { changes.Add(driver(nil)) }, 0},
			{"30 s", func() { changes.Modify(driver(new(int64(30)))) }, 2},
			{"10 s", func() { changes.Modify(driver(new(int64(10)))) }, 6},
			{"no period any more", func() { changes.Modify(driver(nil)) }, 0},
			{"10 s again", func() { changes.Modify(driver(new(int64(10)))) }, 6},
			{"no object any more", func() { changes.Delete(driver(new(int64(10)))) }, 0},
		} {
			did = 0
			c.change()
			time.Sleep(65 * time.Second)
			synctest.Wait()
			if did != c.want {
				t.Errorf("%s: done %d times, want %d", c.what, did, c.want)
			}
		}
		cancel()
		<-done
	})
}
