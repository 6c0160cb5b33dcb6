package housekeeping

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Rounds do not wait for each other, a task that fails keeps no other from being done, and nothing is done before it is known what is needed.
func TestRounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var did []string
		var ready atomic.Bool
		do := func(what string, err error) Task {
			return Task{what, func(context.Context) error { did = append(did, fmt.Sprint(what, time.Since(begun))); return err }}
		}
		hangs := Task{"hangs", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		var log strings.Builder
		go func() {
			done <- Run(ctx, []Round{{Every: 30 * time.Second, Ready: ready.Load, Tasks: []Task{do("a", errors.New("bad")), do("b", nil)}},
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

func TestExcess(t *testing.T) {
	t.Parallel()
	c := func(id string, s runtime.State) runtime.Container {
		return runtime.Container{ID: runtime.ContainerID{ID: id}, Name: "c", State: s}
	}
	p := &runtime.PodStatus{Containers: []runtime.Container{c("4", runtime.StateRunning), c("3", runtime.StateExited), c("2", runtime.StateExited), c("1", runtime.StateExited)}}
	var got string
	for _, x := range excess(p) {
		got += x.ID.ID
	}
	if got != "21" {
		t.Errorf("removed %q, want all but the running one and the last dead one", got)
	}
}

func TestUnusedSandboxes(t *testing.T) {
	t.Parallel()
	p := &runtime.PodStatus{UID: types.UID("u"), Sandboxes: []runtime.Sandbox{{ID: "newest"}, {ID: "ready", Ready: true}, {ID: "used"}, {ID: "old"}},
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
		return runtime.Container{ID: runtime.ContainerID{ID: id}, Name: "c", SandboxID: "new", State: runtime.StateExited}
	}
	n := &node{listed: &runtime.PodStatus{UID: "u", Name: "p", Namespace: "ns", Containers: []runtime.Container{dead("3"), dead("2"), dead("1")}},
		now: &runtime.PodStatus{UID: "u", Sandboxes: []runtime.Sandbox{{ID: "new"}, {ID: "old"}}, Containers: []runtime.Container{dead("3"), dead("2")}}}
	err := Containers{Runtime: n, RemoveLog: func(p *runtime.PodStatus, c *runtime.Container) error {
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
