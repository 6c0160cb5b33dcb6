package supervise

import (
	"context"
	"sync"
)

// Changing are processes that a supervisor keeps running, whose flags and files may change while they do.
type Changing struct {
	supervisor *Supervisor

	mu      sync.Mutex // held for the whole of a change: one at a time
	running map[string]*changing
}

// changing is a process that is kept running until stop; done is closed when it has ended.
type changing struct {
	basis string
	stop  context.CancelFunc
	done  chan struct{}
}

// NewChanging returns a keeper that keeps no process yet.
func NewChanging(s *Supervisor) *Changing {
	return &Changing{supervisor: s, running: map[string]*changing{}}
}

// Keep starts those of the processes that do not run, and restarts those whose basis, everything that they read at
// their start, is another than then. All others go on. Those that must end do so at the same time. They live until ctx
// ends.
func (k *Changing) Keep(ctx context.Context, processes []Process, basis func(Process) string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := map[string]string{}
	for _, p := range processes {
		now[p.Name] = basis(p)
		if c := k.running[p.Name]; c != nil && c.basis != now[p.Name] {
			k.supervisor.log.Info("a process starts again with other settings", "process", p.Name)
			c.stop()
		}
	}
	for _, p := range processes {
		if c := k.running[p.Name]; c != nil {
			if c.basis == now[p.Name] {
				continue
			}
			<-c.done
		}
		life, stop := context.WithCancel(ctx)
		c := &changing{basis: now[p.Name], stop: stop, done: make(chan struct{})}
		k.running[p.Name] = c
		go func() {
			defer close(c.done)
			k.supervisor.Keep(life, p)
		}()
	}
}

// Wait returns when all processes have ended, after the context of Keep. Keep must not be called again.
func (k *Changing) Wait() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.running {
		<-c.done
		c.stop()
	}
}
