package cluster

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/join"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
)

// nodeOptions are those of a machine that joins a cluster which does not answer.
func nodeOptions() join.Options {
	return join.Options{Server: "127.0.0.1:1", Token: "abcdef.0123456789abcdef", UnsafeSkipCAVerification: true}
}

// TestForeignDirectory: no new cluster has its data among files of others, which its end would delete.
func TestForeignDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	home := machine.Home(t.TempDir())
	for name, start := range map[string]func(context.Context, plan.Config) error{
		"up": func(ctx context.Context, c plan.Config) error {
			_, _, err := Up(ctx, home, c, "/bin/false", io.Discard)
			return err
		},
		"join": func(ctx context.Context, c plan.Config) error {
			c.Name = "other"
			_, err := Join(ctx, home, c, nodeOptions(), "/bin/false", io.Discard)
			return err
		},
	} {
		c := plantest.Config(t)
		thesis := filepath.Join(c.DataDir, "thesis.tex")
		if err := os.WriteFile(thesis, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		want := "--data-dir " + c.DataDir + ": contains files that are not a cluster's (thesis.tex)"
		if err := start(ctx, c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if found, err := Down(ctx, c.DataDir, false, false, io.Discard); found || err != nil {
			t.Errorf("%s made a cluster: %v", name, err)
		}
		if err := host.StatError(thesis); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestJoinThatWaited: a join that waits for another looks at the data directory when the other has ended, and leaves
// the cluster that is there then.
func TestJoinThatWaited(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	c := plantest.Config(t)
	other, err := machine.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	waits, joined := make(chan struct{}), make(chan error, 1)
	go func() {
		late := c
		late.Name = "late"
		_, err := Join(&asked{Context: ctx, waits: waits}, machine.Home(t.TempDir()), late, nodeOptions(), "/bin/false",
			io.Discard)
		joined <- err
	}()
	<-waits
	if err := errors.Join(datadir.Save(c), other.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-joined; err == nil || !strings.Contains(err.Error(), "there is a cluster in "+c.DataDir+" already") {
		t.Error(err)
	}
}

// TestJoinBesideSupervisor: a supervisor that does not answer has its data directory for itself all the same.
func TestJoinBesideSupervisor(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	for name, joined := range map[string]bool{"without a configuration": false, "of a node": true} {
		c := plantest.Config(t)
		want := "there is a cluster in " + c.DataDir + " already"
		if joined {
			c.Joined, c.Nodes = &plan.Joined{}, c.Nodes[:1]
			want = "this machine is the node"
			if err := datadir.Save(c); err != nil {
				t.Fatal(err)
			}
		}
		supervisor, err := datadir.Lock(c.Layout().Lock())
		if err != nil {
			t.Fatal(err)
		}
		defer supervisor.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := Join(ctx, machine.Home(t.TempDir()), c, nodeOptions(), "/bin/false", io.Discard); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("a supervisor %s: %v", name, err)
		}
	}
}

// asked is a context that says on waits when something first waits for its end.
type asked struct {
	context.Context
	waits chan struct{}
	once  sync.Once
}

func (a *asked) Done() <-chan struct{} {
	a.once.Do(func() { close(a.waits) })
	return a.Context.Done()
}
