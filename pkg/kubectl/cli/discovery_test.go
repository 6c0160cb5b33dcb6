package cli

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// counted counts how often everything was asked for; err is its answer's.
type counted struct {
	discovery.CachedDiscoveryInterface
	asked int
	err   error
}

func (c *counted) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	c.asked++
	return []*metav1.APIGroup{{Name: "apps"}}, []*metav1.APIResourceList{{GroupVersion: "apps/v1"}}, c.err
}

func (c *counted) Invalidate() {}

// TestReadOnce: everything is read once, again after an error and after it is said to be stale.
func TestReadOnce(t *testing.T) {
	t.Parallel()
	below := &counted{err: errors.New("one group failed")}
	d := &readOnce{CachedDiscoveryInterface: below}
	ask := func(want int) {
		t.Helper()
		groups, lists, err := d.ServerGroupsAndResources()
		if len(groups) != 1 || len(lists) != 1 || !errors.Is(err, below.err) {
			t.Errorf("%v, %v, %v", groups, lists, err)
		}
		if below.asked != want {
			t.Errorf("read %d times, want %d", below.asked, want)
		}
	}
	ask(1)
	below.err = nil
	ask(2)
	ask(2)
	d.Invalidate()
	ask(3)
}
