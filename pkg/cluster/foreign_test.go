package cluster

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
