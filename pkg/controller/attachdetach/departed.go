package attachdetach

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// departed is what a node that was deleted reported last.
type departed struct {
	inUse        []corev1.UniqueVolumeName
	outOfService bool
}

// departures are the deleted nodes that still have attachments, by name. They are lost with the controller: a node that
// is not among them may have had every volume in use.
//
// An entry goes when a node of the name comes back, or when the last attachment is gone.
type departures struct {
	mu sync.Mutex
	of map[string]departed
}

// note remembers a node that was deleted.
func (d *departures) note(n *corev1.Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of[n.Name] = departed{inUse: slices.Clone(n.Status.VolumesInUse), outOfService: outOfService(n)}
}

// forget drops what is remembered of a node.
func (d *departures) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, name)
}

// last returns what the node reported last, nil if that is not known.
func (d *departures) last(name string) *departed {
	d.mu.Lock()
	defer d.mu.Unlock()
	if is, ok := d.of[name]; ok {
		return &is
	}
	return nil
}
