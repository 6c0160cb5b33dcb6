package cluster

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/start"
)

// TestHome: clusters are found in their usual places and by the user's kubeconfig; a name leads to the one that has it.
func TestHome(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	runtime.LockOSThread() // never unlocked: the thread's namespace ends with it
	// the links of a cluster that the machine has would be found as well; only root can
	_ = unix.Unshare(unix.CLONE_NEWNET)
	root, err := datadir.Resolve(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := machine.Home(root)
	saved := func(name, dir string) plan.Config {
		c := plan.Default(dir, "/bin")
		c.Name = name
		if err := datadir.Save(c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	saved(plan.DefaultName, home.DataDir(plan.DefaultName))
	saved("dev", home.DataDir("dev"))
	far := saved("far", filepath.Join(root, "elsewhere"))
	if err := pki.Make(far, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := kubeconfig.Export(t.Context(), far, io.Discard); err != nil {
		t.Fatal(err)
	}
	all, err := Clusters(home)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, " "); got != "bonsai dev far" {
		t.Errorf("clusters: %s", got)
	}
	for name, want := range map[string]string{plan.DefaultName: home.DataDir(plan.DefaultName),
		"dev": home.DataDir("dev"), "far": far.DataDir, "new": home.DataDir("new")} {
		if got, err := Find(home, name); err != nil || got != want {
			t.Errorf("%s is in %s, not %s: %v", name, got, want, err)
		}
	}
	second := saved("far", filepath.Join(root, "second"))
	m, err := start.Survey(second, home)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Plan(second); err == nil || !strings.Contains(err.Error(), "the name far") {
		t.Errorf("two clusters of one name: %v", err)
	}
	var out strings.Builder
	if err := PrintList(t.Context(), home, &out); err != nil || strings.Count(out.String(), "stopped") != 3 ||
		!strings.Contains(out.String(), "bonsai-dev") {
		t.Errorf("%v\n%s", err, &out)
	}
	// A kubeconfig that cannot be read hides the clusters that it alone names, and no others.
	if err := os.WriteFile(os.Getenv("KUBECONFIG"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := PrintList(t.Context(), home, &out); err != nil || strings.Count(out.String(), "stopped") != 2 ||
		!strings.Contains(out.String(), os.Getenv("KUBECONFIG")) {
		t.Errorf("%v\n%s", err, &out)
	}
	if got, err := Find(home, "dev"); err != nil || got != home.DataDir("dev") {
		t.Errorf("dev is in %s: %v", got, err)
	}
	out.Reset()
	if found, err := Down(t.Context(), home.DataDir("dev"), false, false, &out); err != nil || !found ||
		!strings.Contains(out.String(), "a context of the cluster in it stays") {
		t.Errorf("down: %t, %v\n%s", found, err, &out)
	}
	if _, err := start.Survey(second, home); err == nil {
		t.Error("a cluster starts whose context cannot be written")
	}
}
