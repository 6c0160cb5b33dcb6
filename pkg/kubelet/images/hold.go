package images

import (
	"context"
	"sync"

	"bonsai/pkg/kubelet/runtime"
)

// holds protects images that are about to become containers from being removed: the runtime counts a use only once the
// container is made. mu is held for look-ups only, never during a pull or a removal.
type holds struct {
	mu    sync.Mutex
	users map[string]int
	// going has the images that are being removed; the channel is closed when that is over.
	going map[string]chan struct{}
	// removals counts the removals that have begun. If it changed while an image was looked up, that image may be gone.
	removals uint64
}

func newHolds() *holds {
	return &holds{users: map[string]int{}, going: map[string]chan struct{}{}}
}

// Hold gets an image and protects it until release is called. If an image was removed meanwhile, get is called again,
// because it may have been this one.
func (m *Manager) Hold(ctx context.Context, get func() (*runtime.Image, error)) (img *runtime.Image, release func(),
	err error) {
	h := m.holds
	for {
		h.mu.Lock()
		before := h.removals
		h.mu.Unlock()
		if img, err = get(); err != nil {
			return nil, nil, err
		}
		id := img.ID
		h.mu.Lock()
		if h.removals == before && h.going[id] == nil {
			h.users[id]++
			h.mu.Unlock()
			return img, sync.OnceFunc(func() { h.release(id) }), nil
		}
		going := h.going[id]
		h.mu.Unlock()
		if going != nil {
			select {
			case <-going:
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			}
		}
	}
}

func (h *holds) release(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users[id]--; h.users[id] <= 0 {
		delete(h.users, id)
	}
}

// whenFree runs f, which removes the image, unless the image is held, and returns its error. Hold waits until f is
// done.
func (m *Manager) whenFree(id string, f func() error) error {
	h := m.holds
	h.mu.Lock()
	if h.users[id] > 0 || h.going[id] != nil {
		h.mu.Unlock()
		return nil
	}
	done := make(chan struct{})
	h.going[id] = done
	h.removals++
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.going, id)
		h.mu.Unlock()
		close(done)
	}()
	return f()
}
