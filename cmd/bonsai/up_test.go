package main

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"bonsai/pkg/cluster"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/programs"
	"bonsai/pkg/cluster/snapshot"
)

// TestUpOfJoined: on a machine that has joined, up starts the node again as it is. It refuses what only the machine
// with the control plane can change, and changes nothing.
func TestUpOfJoined(t *testing.T) {
	t.Parallel()
	c := plan.Default(t.TempDir(), "/bin")
	c.Nodes = []plan.Node{{Number: 1, Hostname: "web-1"}}
	c.Joined = &plan.Joined{Server: netip.MustParseAddrPort("192.0.2.1:6443"),
		Address: netip.MustParseAddr("192.0.2.2")}
	if err := datadir.Save(c); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	content := "apiVersion: bonsai.io/v1alpha1\nkind: Cluster\nname: bonsai\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{}, {"--wait=1m"}, {"--programs=machine"}, {"--nodes=2"}, {"--control-planes=3"}, {"--port=8080:30080"}, {"--egress=false"},
		{"--addons=coredns=false"}, {"--config=" + file}, {"--registry-mirror=http://192.0.2.3"}, {"--api-port=7000"},
		{"--kubeconfig-mode=0640"}, {"--ip-family=dual"}, {"--advertise-address=192.0.2.2"},
	} {
		var f upFlags
		cmd := &cobra.Command{}
		f.add(cmd)
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		_, err := f.config(cmd, &chosen{dataDir: c.DataDir, placed: true}, "/bin", changeNothing)
		name, _, _ := strings.Cut(strings.Join(args, ""), "=")
		want := name + ": this machine has joined the cluster at 192.0.2.1:6443"
		if len(args) == 0 || name == "--wait" || name == "--programs" {
			if err != nil {
				t.Errorf("%v: %v", args, err)
			}
		} else if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestPrograms: --programs is kept in the cluster's configuration, its default is not, and another value is refused.
func TestPrograms(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ flag, want, err string }{
		{"--programs=machine", programs.Machine, ""},
		{"--programs=bundled", "", ""},
		{"--programs=", "", `--programs: must be bundled or machine, not ""`},
	} {
		var f upFlags
		cmd := &cobra.Command{}
		f.add(cmd)
		if err := cmd.ParseFlags([]string{test.flag}); err != nil {
			t.Fatal(err)
		}
		config, err := f.config(cmd, &chosen{dataDir: t.TempDir(), placed: true}, "/bin", changeNothing)
		if test.err != "" {
			if err == nil || err.Error() != test.err {
				t.Errorf("%s: %v", test.flag, err)
			}
		} else if err != nil || config.Programs != test.want {
			t.Errorf("%s: %q, %v", test.flag, config.Programs, err)
		}
	}
}

// TestBrokenRestore: a restore that was broken off is finished before start and up read the configuration, which is the
// snapshot's from then on. `check` leaves it alone.
func TestBrokenRestore(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(context.Context, *chosen) (plan.Config, error){
		"start": func(ctx context.Context, chosen *chosen) (plan.Config, error) {
			return kept(ctx, chosen, "/bin/bonsai")
		},
		"up": func(ctx context.Context, chosen *chosen) (plan.Config, error) {
			return configured(ctx, chosen, cluster.FinishRestore)
		},
		"check": func(ctx context.Context, chosen *chosen) (plan.Config, error) {
			return configured(ctx, chosen, changeNothing)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, then := plan.Default(t.TempDir(), "/bin"), plan.Default("", "/bin")
			now.Name, then.Name = "now", "then"
			then.DataDir = filepath.Join(now.DataDir, snapshot.Restored)
			for _, c := range []plan.Config{now, then} {
				if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := datadir.Save(c); err != nil {
					t.Fatal(err)
				}
			}
			want := "then"
			if name == "check" {
				want = "now"
			}
			c, err := read(t.Context(), &chosen{dataDir: now.DataDir, placed: true})
			if err != nil || c.Name != want {
				t.Errorf("the cluster %s is read, not %s: %v", c.Name, want, err)
			}
			if snapshot.IsUnfinished(now.DataDir) != (name == "check") {
				t.Error("the restore is finished only if the command changes the cluster")
			}
		})
	}
}

// configured is the cluster that up without flags wants.
func configured(ctx context.Context, chosen *chosen, prepare func(context.Context, string) error) (plan.Config, error) {
	var f upFlags
	cmd := &cobra.Command{}
	f.add(cmd)
	cmd.SetContext(ctx)
	return f.config(cmd, chosen, "/bin", prepare)
}
