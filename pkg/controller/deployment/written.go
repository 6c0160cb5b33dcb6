package deployment

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"bonsai/pkg/controller"
)

// written has, per Deployment, the resourceVersion of the last write of one of its ReplicaSets. The sizes of all of
// them are judged together: with one in its new size and another in its old size, a round would give away more replicas
// than there are. Nothing is decided until the cache has caught up. The workers share it; an entry goes when the cache
// shows the write, or with the Deployment.
type written struct {
	mu       sync.Mutex
	versions map[controller.Key]string
}

// remember keeps the newest of the versions that it is given.
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

// older reports whether one version precedes another. Versions that cannot be compared count as caught up: a wait that
// nothing ends would stop the Deployment for good.
func older(version, than string) bool {
	cmp, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && cmp < 0
}
