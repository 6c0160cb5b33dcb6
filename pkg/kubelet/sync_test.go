package kubelet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/podworker"
)

// A pod that ends costs no lists of the runtime while nothing happens to it.
func TestAnEndingPodIsLookedAtWhenItChanges(t *testing.T) {
	t.Parallel()
	k := plain()
	k.workers = podworker.New(k, func(*corev1.Pod) {}, k.log)
	synctest.Test(t, func(t *testing.T) {
		st := k.state("u")
		looks, done := 0, make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			eachChange(context.Background(), st.changed, done, func() { looks++ })
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		if looks != 0 {
			t.Errorf("%d looks although nothing happened", looks)
		}
		for want := 1; want < 3; want++ {
			k.changed("u")
			k.changed("other")
			synctest.Wait()
			if looks != want {
				t.Errorf("%d looks after %d changes", looks, want)
			}
		}
		close(done)
		<-ended
		if len(k.states) != 1 {
			t.Error("a pod that is not known is remembered")
		}
	})
}
