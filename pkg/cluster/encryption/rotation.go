package encryption

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// Step is a step of a rotation.
type Step int

const (
	// Begin chooses the name of the new key, and remembers it.
	Begin Step = iota
	// Add adds the new key behind the one that writes: from then on, API servers can read its values.
	Add
	// Load waits until every API server has loaded the file.
	Load
	// Lead puts the new key first: from then on, API servers write by it.
	Lead
	// Settle waits until no API server writes by the key that was first before.
	Settle
	// Count counts the Secrets in etcd by their keys.
	Count
	// Rewrite has the API servers write the Secrets again that are not by the new key.
	Rewrite
	// Drop takes the other keys out of the file.
	Drop
	// Return puts a key back into the file that a Secret still needs.
	Return
	// End forgets the keys that nobody needs, and the rotation.
	End
)

// String is what the user reads of a step.
func (s Step) String() string {
	return [...]string{"Choose a new key", "Let the API servers read the new key", "Wait until all of them have loaded it",
		"Let them write with the new key", "Wait for writes with the old key", "Count the Secrets by key", "Write the Secrets again",
		"Drop the other keys", "Take a key back that is needed", "Forget the keys that nothing needs"}[s]
}

// Facts are what decides how a rotation goes on.
type Facts struct {
	// Target is the new key, "" before one was chosen.
	Target string
	// Keys are those of the file, Kept those that only snapshots need.
	Keys, Kept []string
	// Loaded reports whether every API server has loaded the file as it is, and Settled whether none writes by another
	// key than its first.
	Loaded, Settled bool
	// Stored has the number of Secrets by each key in etcd; nil: they were not counted since the API servers settled.
	Stored map[Holder]int
}

// Holder is what a value in etcd is encrypted by. It is empty for values that are not.
type Holder struct{ Provider, Key string }

// Next returns the next step of a rotation. No step makes a Secret unreadable: a key writes only after all can read it,
// and leaves the file only after nothing is by it.
func Next(f Facts) Step {
	leads := len(f.Keys) > 0 && f.Keys[0] == f.Target
	switch {
	case f.Target == "":
		return Begin
	case !slices.Contains(f.Keys, f.Target):
		return Add
	case !f.Loaded:
		return Load
	case !leads:
		return Lead
	case !f.Settled:
		return Settle
	case f.Stored == nil:
		return Count
	case f.hasLost():
		return Return
	case f.others() > 0:
		return Rewrite
	case len(f.Keys) > 1:
		return Drop
	}
	return End
}

// others is the number of Secrets that are not by the new key.
func (f Facts) others() (n int) {
	for holder, count := range f.Stored {
		if holder != (Holder{Provider, f.Target}) {
			n += count
		}
	}
	return n
}

// hasLost reports whether a Secret is by a key that has left the file.
func (f Facts) hasLost() bool {
	return slices.ContainsFunc(f.Kept, func(name string) bool {
		return f.Stored[Holder{Provider, name}] > 0 && !slices.Contains(f.Keys, name)
	})
}

// Cluster is what a rotation needs of a running cluster.
type Cluster interface {
	// Lock keeps every other command from changing the cluster until the result is closed.
	Lock(ctx context.Context) (io.Closer, error)
	// AwaitLoaded returns when every API server has loaded a file of that hash.
	AwaitLoaded(ctx context.Context, hash string) error
	// Settle returns when requests that the API servers had begun before are done.
	Settle(ctx context.Context) error
	// Stored counts the Secrets in etcd by what they are encrypted by.
	Stored(ctx context.Context) (map[Holder]int, error)
	// Rewrite has the API servers write every Secret again that is by another key.
	Rewrite(ctx context.Context, by Holder) error
}

// Rotation changes the key of a cluster. What it has done is in files and in etcd alone, so one that was killed goes on
// when it is run again.
type Rotation struct {
	Layout  plan.Layout
	Cluster Cluster
	Now     func() time.Time
	// Report runs a step and tells the user.
	Report func(name string, run func() error) error

	facts Facts
	hash  string // of the file that was loaded
}

// rounds bounds the steps of a rotation: 12 are usual.
const rounds = 100

// Run takes the steps until the rotation is done.
func (r *Rotation) Run(ctx context.Context) error {
	for range rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.look(); err != nil {
			return err
		}
		step := Next(r.facts)
		if err := r.Report(step.String(), func() error { return r.take(ctx, step) }); err != nil {
			return fmt.Errorf("%w (run %s again to go on)", err, Command(r.Layout, "rotate"))
		}
		if step == End {
			return nil
		}
	}
	return fmt.Errorf("the Secrets do not come to be by one key: something else changes the keys or etcd (%s)",
		Command(r.Layout, "status"))
}

// look finds what the files say. What was waited for or counted with another file does not count any more.
func (r *Rotation) look() error {
	keys, err := Read(r.Layout)
	if err != nil {
		return err
	}
	kept, err := Kept(r.Layout)
	if err != nil {
		return err
	}
	hash, err := Hash(r.Layout)
	if err != nil {
		return err
	}
	if r.facts.Target, err = target(r.Layout); err != nil {
		return err
	}
	if hash != r.hash {
		r.facts.Loaded, r.facts.Stored = false, nil
	}
	if !slices.Equal(names(keys)[:1], r.facts.Keys[:min(1, len(r.facts.Keys))]) {
		r.facts.Settled = false
	}
	r.facts.Keys, r.facts.Kept = names(keys), names(kept)
	return nil
}

// take takes a step.
func (r *Rotation) take(ctx context.Context, step Step) (err error) {
	switch step {
	case Load:
		hash, err := Hash(r.Layout)
		if err != nil {
			return err
		}
		if err := r.Cluster.AwaitLoaded(ctx, hash); err != nil {
			return err
		}
		r.hash, r.facts.Loaded = hash, true
		return nil
	case Settle:
		if err := r.Cluster.Settle(ctx); err != nil {
			return err
		}
		r.facts.Settled = true
		return nil
	case Count:
		r.facts.Stored, err = r.Cluster.Stored(ctx)
		return err
	case Rewrite:
		r.facts.Stored = nil
		return r.Cluster.Rewrite(ctx, Holder{Provider, r.facts.Target})
	}
	lock, err := r.Cluster.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	// Another command may have changed the keys, or etcd, before this one had the lock.
	if err := r.look(); err != nil {
		return err
	}
	if step == Drop || step == End {
		if r.facts.Stored, err = r.Cluster.Stored(ctx); err != nil {
			return err
		}
	}
	if Next(r.facts) != step {
		return nil // the next look says how it goes on
	}
	return r.change(step)
}

// change takes a step that changes files.
func (r *Rotation) change(step Step) error {
	l := r.Layout
	keys, err := Read(l)
	if err != nil {
		return err
	}
	switch step {
	case Begin:
		return host.KeepFile(l.Rotation(), []byte(newName(r.Now())+"\n"))
	case Add:
		return write(l, slices.Insert(keys, min(1, len(keys)), newKey(r.facts.Target)))
	case Lead:
		first, _ := find(r.facts.Target, keys)
		keys = slices.DeleteFunc(keys, func(k Key) bool { return k.Name == first.Name })
		return write(l, slices.Insert(keys, 0, first))
	case Return:
		kept, err := Kept(l)
		if err != nil {
			return err
		}
		for _, k := range kept {
			if _, there := find(k.Name, keys); !there && r.facts.Stored[Holder{Provider, k.Name}] > 0 {
				keys = append(keys, k)
			}
		}
		return write(l, keys)
	case Drop:
		return retire(l)
	case End:
		// The rotation ends last: one that is killed here forgets the keys when it is run again.
		if err := forget(l); err != nil {
			return err
		}
		return os.Remove(l.Rotation())
	}
	return fmt.Errorf("step %d changes no file", step)
}

// Hash identifies the content of the cluster's file, as the API servers do in their metrics.
func Hash(l plan.Layout) (string, error) {
	text, err := os.ReadFile(l.Encryption())
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Holders returns what Secrets are encrypted by, in a fixed order: by provider and key.
func Holders(stored map[Holder]int) []Holder {
	return slices.SortedFunc(maps.Keys(stored), func(a, b Holder) int {
		return slices.Compare([]string{a.Provider, a.Key}, []string{b.Provider, b.Key})
	})
}
