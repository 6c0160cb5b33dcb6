package encryption

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// TestNext: a key writes only after all API servers can read it, and leaves only after nothing is by it.
func TestNext(t *testing.T) {
	t.Parallel()
	by := func(name string) Holder { return Holder{Provider, name} }
	for _, test := range []struct {
		facts Facts
		want  Step
	}{
		{Facts{Keys: []string{"a"}}, Begin},
		{Facts{Target: "b", Keys: []string{"a"}}, Add},
		{Facts{Target: "b", Keys: []string{"a", "b"}}, Load},
		{Facts{Target: "b", Keys: []string{"a", "b"}, Loaded: true}, Lead},
		{Facts{Target: "b", Keys: []string{"b", "a"}}, Load},
		{Facts{Target: "b", Keys: []string{"b", "a"}, Loaded: true}, Settle},
		{Facts{Target: "b", Keys: []string{"b", "a"}, Loaded: true, Settled: true}, Count},
		{Facts{Target: "b", Keys: []string{"b", "a"}, Loaded: true, Settled: true,
			Stored: map[Holder]int{by("a"): 1, by("b"): 3}}, Rewrite},
		{Facts{Target: "b", Keys: []string{"b", "a"}, Loaded: true, Settled: true,
			Stored: map[Holder]int{{}: 1}}, Rewrite},
		{Facts{Target: "b", Keys: []string{"b", "a"}, Loaded: true, Settled: true,
			Stored: map[Holder]int{by("b"): 3}}, Drop},
		{Facts{Target: "b", Keys: []string{"b"}, Kept: []string{"a"}, Loaded: true, Settled: true,
			Stored: map[Holder]int{by("a"): 1, by("b"): 3}}, Return},
		{Facts{Target: "b", Keys: []string{"b"}, Kept: []string{"a"}, Loaded: true, Settled: true,
			Stored: map[Holder]int{by("b"): 3}}, End},
		{Facts{Target: "b", Keys: []string{"b"}, Loaded: true, Settled: true, Stored: map[Holder]int{}}, End},
	} {
		if got := Next(test.facts); got != test.want {
			t.Errorf("%+v: %s, want %s", test.facts, got, test.want)
		}
	}
}

// fake is a cluster of API servers, each with the keys that it has loaded, and the Secrets in etcd by their keys. It
// checks after every step that each API server can read each Secret.
type fake struct {
	t       *testing.T
	l       plan.Layout
	servers [][]string
	secrets map[string]Holder
	// late is a Secret that an API server still writes by its old key, when the file has lost that one.
	late string
}

func newFake(t *testing.T) *fake {
	l := plantest.Config(t).Layout()
	if err := write(l, []Key{newKey("old")}); err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, l: l, servers: [][]string{{"old"}, {"old"}, {"old"}}, secrets: map[string]Holder{}}
	for i := range 5 {
		f.secrets[fmt.Sprint(i)] = Holder{Provider, "old"}
	}
	f.secrets["plain"] = Holder{}
	return f
}

// check is called after each step, and where a rotation was killed.
func (f *fake) check() {
	for i, keys := range f.servers {
		for name, by := range f.secrets {
			if by.Key != "" && name != f.late && !slices.Contains(keys, by.Key) {
				f.t.Errorf("API server %d has %v, and cannot read %s, which is by %s", i, keys, name, by.Key)
			}
		}
	}
}

// loads has one API server load the file. Its clients then write a Secret.
func (f *fake) loads(i int) {
	keys, err := Read(f.l)
	if err != nil {
		f.t.Error(err)
		return
	}
	f.servers[i] = names(keys)
	f.writes()
}

// writes has each API server write a Secret by its first key.
func (f *fake) writes() {
	for i, keys := range f.servers {
		f.secrets[fmt.Sprint("of ", i)] = Holder{Provider, keys[0]}
		f.check()
	}
}

func (f *fake) Lock(context.Context) (io.Closer, error) { return io.NopCloser(nil), nil }

func (f *fake) AwaitLoaded(ctx context.Context, hash string) error {
	if is, err := Hash(f.l); err != nil || is != hash {
		return fmt.Errorf("waits for %s, not %s (%v)", hash, is, err)
	}
	for i := range f.servers {
		if ctx.Err() != nil { // killed, while others have loaded
			return ctx.Err()
		}
		f.loads(i)
	}
	return nil
}

func (f *fake) Settle(context.Context) error { return nil }

func (f *fake) Stored(context.Context) (map[Holder]int, error) {
	stored := map[Holder]int{}
	for _, by := range f.secrets {
		stored[by]++
	}
	return stored, nil
}

func (f *fake) Rewrite(_ context.Context, by Holder) error {
	for name, has := range f.secrets {
		if has != by {
			f.secrets[name] = Holder{Provider, f.servers[0][0]}
			f.check()
		}
	}
	return nil
}

func (f *fake) rotate(ctx context.Context, report func(string, func() error) error) error {
	r := Rotation{Layout: f.l, Cluster: f, Now: func() time.Time { return now }, Report: report}
	return r.Run(ctx)
}

// done checks a cluster after its rotation, and returns its key.
func (f *fake) done() string {
	f.t.Helper()
	f.check()
	keys, err := Read(f.l)
	if err != nil || len(keys) != 1 || keys[0].Name == "old" || IsRotating(f.l) {
		f.t.Fatalf("%v (%v), a rotation: %t", names(keys), err, IsRotating(f.l))
	}
	for name, by := range f.secrets {
		if by != (Holder{Provider, keys[0].Name}) {
			f.t.Errorf("%s is by %v", name, by)
		}
	}
	return keys[0].Name
}

// steps is the number of steps of a rotation that nothing disturbs.
const steps = 13

// plain runs a step.
func plain(_ string, run func() error) error { return run() }

// TestRotation: after a rotation all Secrets are by one new key, and the old one is gone.
func TestRotation(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var taken []string
	if err := f.rotate(t.Context(), func(name string, run func() error) error {
		taken = append(taken, name)
		return run()
	}); err != nil {
		t.Fatal(err)
	}
	first := f.done()
	if !strings.HasPrefix(first, "key-2026-11-28-") {
		t.Errorf("the key is called %s", first)
	}
	if kept, err := Kept(f.l); err != nil || len(kept) > 0 {
		t.Errorf("kept: %v, %v", kept, err)
	}
	if len(taken) != steps {
		t.Errorf("steps: %q", taken)
	}
	if err := f.rotate(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	if second := f.done(); second == first {
		t.Error("a second rotation has the key of the first")
	}
}

// TestKilledRotation: a rotation that is killed before, in or after any step leaves all readable, and goes on with the
// same key.
func TestKilledRotation(t *testing.T) {
	t.Parallel()
	for killedAt := range steps {
		for _, moment := range []string{"before", "in", "after"} {
			f := newFake(t)
			ctx, kill := context.WithCancel(t.Context())
			step := 0
			err := f.rotate(ctx, func(_ string, run func() error) error {
				defer func() { step++ }()
				if step < killedAt {
					return run()
				}
				switch moment {
				case "in": // of three API servers none, or some, have loaded
					kill()
					return run()
				case "after":
					_ = run() // its process has ended, whatever it says
				}
				kill()
				return context.Canceled
			})
			if !errors.Is(err, context.Canceled) && killedAt < steps-1 {
				t.Fatalf("killed %s step %d: %v", moment, killedAt, err)
			}
			f.check()
			if moment == "in" { // the API servers look at the file at times of their own
				f.loads(killedAt % 3)
			}
			begun, err := target(f.l)
			if err != nil {
				t.Fatal(err)
			}
			if killedAt == steps-1 && moment != "before" { // the last step had been taken
				f.done()
				continue
			}
			if err := f.rotate(t.Context(), plain); err != nil {
				t.Fatalf("after a kill %s step %d: %v", moment, killedAt, err)
			}
			if key := f.done(); begun != "" && key != begun {
				t.Errorf("killed %s step %d: it went on with %s, not %s", moment, killedAt, key, begun)
			}
		}
	}
}

// TestLateWrite: a Secret that was written by the old key after that has left the file makes the key come back, and is
// written again.
func TestLateWrite(t *testing.T) {
	t.Parallel()
	f, came := newFake(t), false
	if err := f.rotate(t.Context(), func(name string, run func() error) error {
		err := run()
		if name == Drop.String() && !came {
			came = true
			f.late = "late"
			f.secrets[f.late] = Holder{Provider, "old"}
		}
		if name == Return.String() {
			f.loads(0)
			f.loads(1)
			f.loads(2)
			f.late = ""
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	f.done()
}

// TestSnapshotsKeepKeys: a rotation keeps the keys that snapshots need, and forgets them when those are gone. A
// restoration admits them again.
func TestSnapshotsKeepKeys(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := plan.Default(string(f.l), "")
	record, err := Record(c, false)
	if err != nil || strings.Contains(string(record), "secret:") || !strings.Contains(string(record), "old") {
		t.Fatalf("%s, %v", record, err)
	}
	if err := os.MkdirAll(f.l.Snapshot("clean"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.l.SnapshotKeys("clean"), record, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.l.Snapshot("notes"), nil, 0o600); err != nil { // the user's
		t.Fatal(err)
	}
	if err := f.rotate(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	first := f.done()
	if kept, err := Kept(f.l); err != nil || !slices.Equal(names(kept), []string{"old"}) {
		t.Fatalf("kept: %v, %v", names(kept), err)
	}
	if err := errors.Join(Missing(f.l, "clean"), Admit(f.l, "clean"), Admit(f.l, "clean")); err != nil {
		t.Fatal(err)
	}
	if keys, err := Read(f.l); err != nil || !slices.Equal(names(keys), []string{first, "old"}) {
		t.Fatalf("after the restoration: %v, %v", names(keys), err)
	}
	for i := range f.servers {
		f.loads(i)
	}
	f.secrets["restored"] = Holder{Provider, "old"}
	if err := os.RemoveAll(f.l.Snapshots()); err != nil {
		t.Fatal(err)
	}
	if err := f.rotate(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	f.done()
	if kept, err := Kept(f.l); err != nil || len(kept) > 0 {
		t.Errorf("kept for no snapshot: %v, %v", names(kept), err)
	}
}
