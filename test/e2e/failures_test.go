package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// beside is a cluster beside the one under test.
func beside(t *testing.T, name string) env {
	t.Helper()
	dir := t.TempDir()
	e := env{bin: cluster.bin, data: filepath.Join(dir, "data"), home: dir, kubeconfig: filepath.Join(dir, "config")}
	t.Cleanup(func() { e.command(2*time.Minute, "bonsai", "--data-dir", e.data, "--name", name, "down") })
	return e
}

// mark is the name of what the cluster has on the host: its link says whose it is.
func (e env) mark(t *testing.T) string {
	t.Helper()
	aliases, err := filepath.Glob("/sys/class/net/bonsai-*/ifalias")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range aliases {
		if text, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(text)) == e.data {
			return filepath.Base(filepath.Dir(path))
		}
	}
	t.Fatalf("no link says that it is of %s", e.data)
	return ""
}

// TestReboot: a reboot ends every process at once and takes links, namespaces, routes, packet rules and cgroups; start
// goes on with the same objects on the same nodes and addresses.
func TestReboot(t *testing.T) {
	isLong(t)
	e := beside(t, "rebooted")
	e.must(t, "bonsai", "--data-dir", e.data, "--name", "rebooted", "up", "--nodes", "2", "--egress=false")
	e.must(t, "kubectl", "create", "deployment", "web", "--image=localhost/busybox:1.0", "--replicas=3", "--", "sleep",
		"1000000")
	e.must(t, "kubectl", "rollout", "status", "deployment/web", bound(80))
	state := []string{"get", "deployments,pods,services,nodes", "-o",
		`jsonpath={range .items[*]}{.metadata.uid} {.spec.nodeName} {.spec.clusterIP} {.spec.podCIDR} {.status.addresses[0].address}{"\n"}{end}`}
	before, mark := e.must(t, "kubectl", state...), e.mark(t)
	killAll(t, append(e.inits(t, 2), e.supervisor(t))...)
	groups, err := cgroupsCalled(mark)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ip", "link", "del", mark}, {"ip", "netns", "del", mark},
		{"nft", "delete", "table", "ip", mark},
		append([]string{"find"}, append(groups, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";")...)} {
		// the killed have to go first
		waitFor(t, strings.Join(args, " "), func() bool { return exec.Command(args[0], args[1:]...).Run() == nil })
	}
	e.must(t, "bonsai", "--data-dir", e.data, "start")
	if after := e.must(t, "kubectl", state...); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	e.must(t, "kubectl", "rollout", "status", "deployment/web", bound(80))
}

// TestTwoUps: of two `up` of a cluster at the same moment one starts it, and both find it ready; another cluster that
// is started then gets addresses of its own.
func TestTwoUps(t *testing.T) {
	isLong(t)
	one, other := beside(t, "one"), beside(t, "other")
	var all sync.WaitGroup
	errs := make([]error, 3)
	for i, e := range []env{one, one, other} {
		name := map[bool]string{true: "one", false: "other"}[i < 2]
		all.Go(func() {
			_, errs[i] = e.command(4*time.Minute, "bonsai", "--data-dir", e.data, "--name", name, "up",
				"--egress=false", "--wait=3m")
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]env{"one": one, "other": other} {
		e.must(t, "bonsai", "--data-dir", e.data, "status")
		if out := e.must(t, "kubectl", "--context", "bonsai-"+name, "get", "nodes",
			"--no-headers"); strings.Count(out, " Ready ") != 1 {
			t.Errorf("%s: %s", name, out)
		}
	}
	if one.mark(t) == other.mark(t) {
		t.Error("both have one mark")
	}
}

// TestInterrupted: `up` is ended at any of its steps, by ctrl-C and by a kill. It says so if it can, and `down` finds
// all that it had made, also what was still on its way.
func TestInterrupted(t *testing.T) {
	ours := cluster.mark(t)
	// left is what is there of another cluster than the one under test.
	left := func(e env) []string {
		all, err := leftovers()
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(thing string) bool {
			marked := strings.Contains(thing, "bonsai-") && !strings.HasPrefix(thing, "process") &&
				!strings.Contains(thing, ours) && !strings.Contains(thing, cluster.data)
			return !marked && !strings.Contains(thing, e.data)
		})
	}
	for _, signal := range []os.Signal{os.Interrupt, os.Kill} {
		for _, after := range []time.Duration{20, 60, 100, 150, 300, 700} { // milliseconds
			after *= time.Millisecond
			t.Run(fmt.Sprintf("%v after %v", signal, after), func(t *testing.T) {
				e := beside(t, "cut")
				var out bytes.Buffer
				up := exec.Command(filepath.Join(e.bin, "bonsai"), "--data-dir", e.data, "--name", "cut", "up",
					"--egress=false")
				up.Env, up.Stdout, up.Stderr = append(os.Environ(), "HOME="+e.home, "KUBECONFIG="+e.kubeconfig), &out,
					&out
				if err := up.Start(); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(after, func() { up.Process.Signal(signal) })
				err := up.Wait()
				// On a busy machine the signal may come before the program hears of any, and ends it.
				silent := signal == os.Kill || up.ProcessState.Sys().(syscall.WaitStatus).Signaled() && out.Len() == 0
				if err == nil || !silent && !strings.Contains(out.String(), "bonsai: error: interrupted: ") {
					t.Errorf("up: %v, %s", err, &out)
				}
				e.must(t, "bonsai", "--data-dir", e.data, "--name", "cut", "down")
				if left := left(e); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
				if _, err := os.Stat(e.data); !os.IsNotExist(err) {
					t.Errorf("the data directory is left: %v", err)
				}
			})
		}
	}
}

// TestHalfDeletedData: whatever is missing of a data directory, `up` works or says what is wrong, and `down` leaves
// nothing.
func TestHalfDeletedData(t *testing.T) {
	isLong(t)
	for _, part := range []string{"pki", "nodes", "etcd", "kubeconfig", "cluster.json"} {
		t.Run(part, func(t *testing.T) {
			e := beside(t, "half")
			up := []string{"--data-dir", e.data, "--name", "half", "up", "--egress=false", "--wait=90s"}
			e.must(t, "bonsai", up...)
			e.must(t, "bonsai", "--data-dir", e.data, "stop")
			if err := os.RemoveAll(filepath.Join(e.data, part)); err != nil {
				t.Fatal(err)
			}
			if out, err := e.command(2*time.Minute, "bonsai", up...); err != nil &&
				!strings.Contains(out, "bonsai: error: ") {
				t.Errorf("up: %v: %s", err, out)
			}
			if err := os.RemoveAll(filepath.Join(e.data, "cluster.json")); err != nil { // while it runs, perhaps
				t.Fatal(err)
			}
			mark := ""
			if links, err := filepath.Glob("/sys/class/net/bonsai-*"); err == nil && len(links) > 1 {
				mark = e.mark(t)
			}
			e.must(t, "bonsai", "--data-dir", e.data, "down")
			if _, err := os.Stat(e.data); !os.IsNotExist(err) {
				t.Errorf("the data directory is left: %v", err)
			}
			if left, err := cgroupsCalled(mark); mark != "" && (err != nil || len(left) > 0) {
				t.Errorf("left: %v, %v", left, err)
			}
			if config, err := os.ReadFile(e.kubeconfig); err == nil && strings.Contains(string(config), "bonsai-half") {
				t.Errorf("the context is left:\n%s", config)
			}
		})
	}
}

// must is command for what has to succeed.
func (e env) must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := e.command(4*time.Minute, name, args...)
	if err != nil {
		t.Fatal(out, err)
	}
	return out
}
