package logs

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Waiting for more output: a change of the directory ends it at once, this time at the latest. Whether the container
// still runs is asked only when nothing came for so long, and not more often: the question is costly, and who writes
// runs.
const (
	followWait = time.Second
	pollWait   = 100 * time.Millisecond // where changes are not told
)

// changes tells followers that there may be more of their logs. All of them share one inotify instance, which is open
// while there are any: the kernel has few for all programs of a user together (fs.inotify.max_user_instances), and one
// for each follower would leave none to the other programs of the node.
type changes struct {
	open func() (*fsnotify.Watcher, error)

	// setup guards watcher, and mu the followers. It is held while the watcher is called, which may wait until tell has
	// taken an error. tell needs mu, so one lock for both could wait for itself.
	setup   sync.Mutex
	watcher *fsnotify.Watcher // nil without followers

	mu        sync.Mutex
	followers map[string]map[*follower]struct{} // by the directory of their log
}

// follower learns about changes of one log.
type follower struct {
	path string
	// changed has room for one change: what follows reads all that there is.
	changed chan struct{}
}

// follow returns where the follower of a log learns about changes, until leave is called, and how long it should wait
// for one. If the kernel has no instance or watch left, it learns nothing and must look more often.
func (c *changes) follow(path string) (changed <-chan struct{}, wait time.Duration, leave func()) {
	f := &follower{filepath.Clean(path), make(chan struct{}, 1)}
	c.setup.Lock()
	defer c.setup.Unlock()
	if c.watcher == nil {
		w, err := c.open()
		if err != nil {
			return nil, pollWait, func() {}
		}
		c.watcher = w
		go c.tell(w) // ends when the last follower leaves and closes w
	}
	c.enter(f)
	// Also if others watch the directory: it may have been made again since.
	if err := c.watcher.Add(filepath.Dir(f.path)); err != nil {
		c.leave(f)
		return nil, pollWait, func() {}
	}
	return f.changed, followWait, func() {
		c.setup.Lock()
		defer c.setup.Unlock()
		c.leave(f)
	}
}

func (c *changes) enter(f *follower) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followers == nil {
		c.followers = map[string]map[*follower]struct{}{}
	}
	dir := filepath.Dir(f.path)
	if c.followers[dir] == nil {
		c.followers[dir] = map[*follower]struct{}{}
	}
	c.followers[dir][f] = struct{}{}
}

// leave forgets a follower and what was watched for it alone. The caller holds setup.
func (c *changes) leave(f *follower) {
	dir := filepath.Dir(f.path)
	c.mu.Lock()
	delete(c.followers[dir], f)
	last := len(c.followers[dir]) == 0
	if last {
		delete(c.followers, dir)
	}
	none := len(c.followers) == 0
	c.mu.Unlock()
	switch {
	case none:
		_ = c.watcher.Close() // nothing can be done about an instance that does not close
		c.watcher = nil
	case last:
		_ = c.watcher.Remove(dir) // the watch may have gone with the directory
	}
}

// tell passes changes on until w is closed.
func (c *changes) tell(w *fsnotify.Watcher) {
	for {
		select {
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			c.wake(e)
		case _, ok := <-w.Errors:
			if !ok {
				return
			}
			c.wakeAll() // the kernel has dropped changes, which may have been anybody's
		}
	}
}

// wake tells the followers of a log that has changed, and those of all logs of a directory in which one was made, as in
// a rotation.
func (c *changes) wake(e fsnotify.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.followers[filepath.Dir(e.Name)] {
		if e.Name == f.path || e.Op&(fsnotify.Create|fsnotify.Rename) != 0 {
			f.wake()
		}
	}
}

func (c *changes) wakeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, dir := range c.followers {
		for f := range dir {
			f.wake()
		}
	}
}

func (f *follower) wake() {
	select {
	case f.changed <- struct{}{}:
	default: // it has a change to look at already
	}
}
