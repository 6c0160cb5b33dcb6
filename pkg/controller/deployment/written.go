package deployment

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"bonsai/pkg/controller"
)

// written has, per Deployment, the resourceVersion of the last write of one of its ReplicaSets. Sizes are shared out
// among all of them, so that who knows one in its new size and another in its old one gives more away than there is:
// nothing is decided until the cache has caught up.
type written struct {
	mu       sync.Mutex
	versions map[controller.Key]string
}

func (w *written) remember(deployment controller.Key, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !older(version, w.versions[deployment]) {
		w.versions[deployment] = version
	}
}

// caughtUp reports whether a cache that has seen everything up to that version has seen all writes.
func (w *written) caughtUp(deployment controller.Key, seen string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if older(seen, w.versions[deployment]) {
		return false
	}
	delete(w.versions, deployment)
	return true
}

func (w *written) forget(deployment controller.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, deployment)
}

func older(version, than string) bool {
	cmp, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && cmp < 0
}
