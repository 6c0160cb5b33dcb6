package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
)

// TestDownAllInterrupted: a down of all clusters that is interrupted does not begin with a further one, and says so.
func TestDownAllInterrupted(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	root, err := datadir.Resolve(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := machine.Home(root)
	c := plan.Default(home.DataDir("dev"), "/bin")
	c.Name = "dev"
	if err := datadir.Save(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetOut(&out)
	err = downAll(cmd, home, false, false)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "and those after it stay") || out.Len() > 0 {
		t.Errorf("%v\n%s", err, &out)
	}
	if _, err := datadir.Load(c.DataDir); err != nil {
		t.Error(err)
	}
}
