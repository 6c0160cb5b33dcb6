package main

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/network"
	"bonsai/pkg/network/cni"
)

// TestAwaitNode: the agent is not long after its Node, however late that is, and does not ask all the time; it ends
// with its context.
func TestAwaitNode(t *testing.T) {
	t.Parallel()
	for _, there := range []time.Duration{0, time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			begin, asked := time.Now(), 0
			get := func(_ context.Context, _, name string) (*corev1.Node, error) {
				asked++
				if name != "n1" || time.Since(begin) < there {
					return nil, errors.New("forbidden")
				}
				return &corev1.Node{}, nil
			}
			if err := awaitNode(t.Context(), get, "n1", slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			if late := time.Since(begin) - there; late > max(lookFirst, there/5) || asked > 40 {
				t.Errorf("there after %s: seen %s later, asked %d times", there, late, asked)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		never := func(context.Context, string, string) (*corev1.Node, error) { return nil, errors.New("forbidden") }
		if err := awaitNode(ctx, never, "n1",
			slog.New(slog.DiscardHandler)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// TestConnect: the network list is written once the node has a podCIDR, not before.
func TestConnect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &settings{node: "here", conf: cni.Dir(dir)}
	state := network.NewState("here", []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")})
	for _, step := range []struct {
		cidr  string
		lists int
	}{{"", 0}, {"10.244.1.0/24", 2}} {
		node := &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: step.cidr}}
		node.Name = "here"
		state.Nodes().Replace([]*corev1.Node{node})
		u := state.Take()
		if wrote, err := s.writeList(u, slog.New(slog.DiscardHandler)); err != nil || wrote != (step.lists > 0) {
			t.Errorf("podCIDR %q: wrote %v, %v", step.cidr, wrote, err)
		}
		lists, err := filepath.Glob(filepath.Join(dir, "*.conflist"))
		if err != nil || len(lists) != step.lists {
			t.Errorf("podCIDR %q: lists %v, %v", step.cidr, lists, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "10-bonsai.conflist")); err != nil || len(data) == 0 {
		t.Error(err)
	}
}
