package housekeeping

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Rounds do not wait for each other, a task that fails keeps no other from being done, and nothing is done before it is
// known what is needed.
func TestRounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var did []string
		var ready atomic.Bool
		do := func(what string, err error) Task {
			return Task{what, func(context.Context) error {
				did = append(did, fmt.Sprint(what, time.Since(begun)))
				return err
			}}
		}
		hangs := Task{"hangs", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		var log strings.Builder
		go func() {
			done <- Run(ctx, []Round{
				{Every: 30 * time.Second, Ready: ready.Load, Tasks: []Task{do("a", errors.New("bad")), do("b", nil)}},
				{Every: time.Second, Tasks: []Task{hangs}}}, slog.New(slog.NewTextHandler(&log, nil)))
		}()
		time.Sleep(45 * time.Second)
		synctest.Wait()
		ready.Store(true)
		time.Sleep(60 * time.Second)
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if want := []string{"a1m0s", "b1m0s", "a1m30s", "b1m30s"}; !slices.Equal(did, want) {
			t.Errorf("done %q, want %q", did, want)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 2 || !strings.Contains(log.String(), "what=a err=bad") {
			t.Errorf("the log: %s", log.String())
		}
	})
}

// TestVictims: the newest container of a name stays while its pod lives; the policy counts dead ones.
func TestVictims(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	pod := func(uid types.UID, running bool, ids ...string) *runtime.PodStatus {
		p := &runtime.PodStatus{UID: uid}
		for i, id := range ids { // the newest first, ten seconds apart
			c := runtime.Container{ID: runtime.ContainerID{ID: id}, Name: "c", State: runtime.StateExited,
				CreatedAt: now.Add(-time.Duration(10*i+len(id)) * time.Second)}
			if running && i == 0 {
				c.State = runtime.StateRunning
			}
			p.Containers = append(p.Containers, c)
		}
		return p
	}
	pods := []*runtime.PodStatus{pod("r", true, "r4", "r3", "r2", "r1"), pod("w", false, "w3", "w2", "w1"),
		pod("over", false, "over2", "over1")}
	ended := func(uid types.UID) bool { return uid == "over" }
	for name, c := range map[string]struct {
		p    ContainerPolicy
		all  bool
		want string
	}{
		"upstream's default":   {ContainerPolicy{PerContainer: 1, Total: -1}, false, "over1 r1 r2 w1 w2"},
		"any number":           {ContainerPolicy{PerContainer: -1, Total: -1}, false, ""},
		"none":                 {ContainerPolicy{PerContainer: 0, Total: -1}, false, "over1 over2 r1 r2 r3 w1 w2"},
		"old ones":             {ContainerPolicy{MinAge: 30 * time.Second, PerContainer: 1, Total: -1}, false, "r1"},
		"in all":               {ContainerPolicy{PerContainer: -1, Total: 6}, false, "r1 w1"},
		"in all, few":          {ContainerPolicy{PerContainer: -1, Total: 2}, false, "over1 r1 r2 r3 w1 w2"},
		"unused, what ended":   {ContainerPolicy{PerContainer: 1, Total: -1}, true, "over1 over2 r1 r2 w1 w2"},
		"unused, all that may": {ContainerPolicy{PerContainer: -1, Total: -1}, true, "over1 over2"},
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(c.p.victims(pods, ended, c.all, now))), " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestUnusedSandboxes(t *testing.T) {
	t.Parallel()
	p := &runtime.PodStatus{UID: types.UID("u"),
		Sandboxes:  []runtime.Sandbox{{ID: "newest"}, {ID: "ready", Ready: true}, {ID: "used"}, {ID: "old"}},
		Containers: []runtime.Container{{Name: "c", SandboxID: "used", State: runtime.StateExited}}}
	if got := unused(p); len(got) != 1 || got[0] != "old" {
		t.Error(got)
	}
}

// node has a pod that looks worse in the list than it is a moment later.
type node struct {
	listed, now *runtime.PodStatus
	removed     []string
}

func (n *node) Pods(context.Context) ([]*runtime.PodStatus, error) {
	return []*runtime.PodStatus{n.listed, {UID: "tidy"}}, nil
}

func (n *node) PodStatus(_ context.Context, uid types.UID) (*runtime.PodStatus, error) {
	if uid != n.listed.UID {
		return nil, errors.New("a tidy pod is looked at")
	}
	return n.now, nil
}

func (n *node) RemoveContainer(_ context.Context, id string) error {
	n.removed = append(n.removed, "container "+id)
	return errors.New("busy")
}

func (n *node) RemoveSandbox(_ context.Context, id string) error {
	n.removed = append(n.removed, "sandbox "+id)
	return nil
}

func TestDeadContainersGoWithTheirLogs(t *testing.T) {
	t.Parallel()
	dead := func(id string) runtime.Container {
		return runtime.Container{ID: runtime.ContainerID{ID: id}, Name: "c", SandboxID: "new",
			State: runtime.StateExited}
	}
	n := &node{listed: &runtime.PodStatus{UID: "u", Name: "p", Namespace: "ns",
		Containers: []runtime.Container{dead("3"), dead("2"), dead("1")}},
		now: &runtime.PodStatus{UID: "u", Sandboxes: []runtime.Sandbox{{ID: "new"}, {ID: "old"}},
			Containers: []runtime.Container{dead("3"), dead("2")}}}
	err := Containers{Runtime: n, Policy: ContainerPolicy{PerContainer: 1, Total: -1}, Ended: func(types.UID) bool {
		return false
	}, Now: time.Now, RemoveLog: func(p *runtime.PodStatus, c *runtime.Container) error {
		n.removed = append(n.removed, "log "+p.Namespace+"/"+p.Name+" "+c.ID.ID)
		return nil
	}}.Clean(t.Context())
	if err == nil || err.Error() != "busy" {
		t.Error(err)
	}
	if want := []string{"container 2", "log ns/p 2", "sandbox old"}; !slices.Equal(n.removed, want) {
		t.Errorf("removed %q, want %q", n.removed, want)
	}
}
