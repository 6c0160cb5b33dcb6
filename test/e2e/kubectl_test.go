package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// usual bounds every wait on a usual machine: generous, since it is shared; a wait ends when its condition
// holds.
const usual = 90 * time.Second

// here returns how long something may take on this machine that takes no longer than d on a usual one.
func here(d time.Duration) time.Duration { return time.Duration(*slow) * d }

// patience bounds every wait on this machine.
func patience() time.Duration { return here(usual) }

// bound returns the flag that bounds a wait of kubectl's, which is so many seconds on a usual machine.
func bound(seconds int) string { return fmt.Sprintf("--timeout=%ds", *slow*seconds) }

// kubectl is one kubectl binary on one namespace, of the cluster under test unless kubeconfig is another one's.
type kubectl struct {
	t          *testing.T
	binary     string
	namespace  string
	kubeconfig string
}

// run returns the trimmed output and fails the test on an error.
func (k kubectl) run(args ...string) string {
	k.t.Helper()
	out, err := k.try(args...)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

func (k kubectl) try(args ...string) (string, error) {
	on := cluster
	if k.kubeconfig != "" {
		on.kubeconfig = k.kubeconfig
	}
	out, err := on.command(usual+30*time.Second, k.binary, append([]string{"-n", k.namespace}, args...)...)
	return strings.TrimSpace(out), err
}

// apply writes a manifest to a file and applies it.
func (k kubectl) apply(manifest string) string {
	k.t.Helper()
	path := filepath.Join(k.t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		k.t.Fatal(err)
	}
	return k.run("apply", "-f", path)
}

// eventually waits until run's output satisfies the condition.
func (k kubectl) eventually(what string, done func(out string) bool, args ...string) string {
	k.t.Helper()
	var out string
	var err error
	if !polled(func() bool { out, err = k.try(args...); return err == nil && done(out) }) {
		k.t.Fatalf("%s: not within %s; the last output of %v was: %s (%v)", what, patience(), args, out, err)
	}
	return out
}

// waitFor fails the test unless the condition comes to hold.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if !polled(holds) {
		t.Fatalf("%s: not within %s", what, patience())
	}
}

// polled asks every 100 ms, up to patience: for what nobody announces.
func polled(holds func() bool) bool {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience()); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

func is(want string) func(string) bool { return func(out string) bool { return out == want } }

func contains(want string) func(string) bool {
	return func(out string) bool { return strings.Contains(out, want) }
}

// newNamespace makes a namespace for the test and deletes it at the end, which must succeed: a namespace that cannot be
// emptied is a bug.
func newNamespace(t *testing.T, binary, name string) kubectl {
	t.Helper()
	k := kubectl{t: t, binary: binary, namespace: name}
	k.run("create", "namespace", name)
	t.Cleanup(func() {
		if _, err := k.try("delete", "namespace", name, bound(80)); err != nil {
			t.Errorf("delete the test's namespace: %v", err)
		}
	})
	return k
}
