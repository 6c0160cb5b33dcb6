package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A cluster's processes can be killed in these ways.
var killings = map[string]func(t *testing.T, e env, nodes int){
	"supervisor": func(t *testing.T, e env, _ int) { killAll(t, e.supervisor(t)) },
	"inits":      func(t *testing.T, e env, nodes int) { killAll(t, e.inits(t, nodes)...) },
	"both":       func(t *testing.T, e env, nodes int) { killAll(t, append(e.inits(t, nodes), e.supervisor(t))...) },
}

// TestKilledLives kills with SIGKILL the supervisor, every node's init, and both, of clusters of one and three nodes,
// which takes every process with it, and goes on with up, which makes the cluster work again, and at last with down,
// which leaves nothing. BONSAI_E2E_LIVES=all ends every way with both, which takes some minutes. It is not parallel: it
// takes the cluster under test down meanwhile, for its addresses.
func TestKilledLives(t *testing.T) {
	if out, err := cluster.command(2*time.Minute, "bonsai", "--data-dir", cluster.data, "down",
		"--keep-data"); err != nil {
		t.Fatal(out, err)
	}
	t.Cleanup(func() {
		if out, err := cluster.command(3*time.Minute, "bonsai", cluster.upArgs()...); err != nil {
			t.Fatal(out, err)
		}
	})
	lives := []struct {
		nodes int
		kills []string // up after each but the last, down after the last
	}{
		{1, []string{"supervisor", "both"}},
		{3, []string{"inits", "both", "supervisor"}},
	}
	if os.Getenv("BONSAI_E2E_LIVES") == "all" {
		lives = nil
		for _, nodes := range []int{1, 3} {
			for kill := range killings {
				lives = append(lives, struct {
					nodes int
					kills []string
				}{nodes, []string{kill, kill}})
			}
		}
	}
	for _, life := range lives {
		t.Run(fmt.Sprintf("%d-%s", life.nodes, strings.Join(life.kills, "-")), func(t *testing.T) {
			dir := t.TempDir()
			e := env{bin: cluster.bin, data: filepath.Join(dir, "data"), home: dir,
				kubeconfig: filepath.Join(dir, "config")}
			t.Cleanup(func() { e.command(2*time.Minute, "bonsai", "--data-dir", e.data, "down") })
			e.upAndWork(t, life.nodes)
			for i, kill := range life.kills {
				killings[kill](t, e, life.nodes)
				if kill != "inits" {
					waitFor(t, "everything dies with the supervisor", func() bool { return len(processes(t)) == 0 })
				}
				if i < len(life.kills)-1 {
					e.upAndWork(t, life.nodes)
				}
			}
			kept, err := os.ReadFile(e.kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if out, err := e.command(2*time.Minute, "bonsai", "--data-dir", e.data, "down"); err != nil {
				t.Error(out, err)
			}
			if took := time.Since(began); took > here(40*time.Second) {
				t.Errorf("down took %s", took)
			}
			if left, err := leftovers(); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if _, err := os.Stat(e.data); !os.IsNotExist(err) {
				t.Errorf("the data directory is left: %v", err)
			}
			// Who kept a kubeconfig finds a closed port of this machine.
			if err := os.WriteFile(e.kubeconfig, kept, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := e.command(time.Minute, "kubectl", "get", "nodes"); err == nil ||
				!strings.Contains(out, " was refused") {
				t.Errorf("a client of a cluster that is gone: %s, %v", out, err)
			}
		})
	}
}

// upAndWork brings the cluster up and has it run a new pod on each node.
func (e env) upAndWork(t *testing.T, nodes int) {
	t.Helper()
	if out, err := e.command(3*time.Minute, "bonsai", "--data-dir", e.data, "up", "--nodes", strconv.Itoa(nodes),
		"--egress=false"); err != nil {
		t.Fatal(out, err)
	}
	for i := 1; i <= nodes; i++ {
		pod := fmt.Sprintf("n%d-%d", i, time.Now().UnixNano())
		overrides := fmt.Sprintf(`{"spec":{"nodeName":"n%d"}}`, i)
		if out, err := e.command(time.Minute, "kubectl", "run", pod, "--image=localhost/busybox:1.0", "--restart=Never",
			"--overrides", overrides, "--command", "--", "true"); err != nil {
			t.Fatal(out, err)
		}
		waitFor(t, "a new pod runs on every node", func() bool {
			out, err := e.command(time.Minute, "kubectl", "get", "pod", pod, "-o", "jsonpath={.status.phase}")
			return err == nil && out == "Succeeded"
		})
	}
}

// pid returns the pid on the host of one of the supervisor's children.
func (e env) pid(t *testing.T, process string) int {
	t.Helper()
	// an error says only that not all of it is up
	out, err := e.command(time.Minute, "bonsai", "--data-dir", e.data, "status")
	for _, line := range strings.Split(out, "\n") {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "host" && f[1] == process {
			if pid, err := strconv.Atoi(f[2]); err == nil && pid > 0 {
				return pid
			}
		}
	}
	t.Fatalf("bonsai status does not show a running %s: %s, %v", process, out, err)
	return 0
}

func (e env) supervisor(t *testing.T) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.pid(t, "etcd")))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(stat), "\n") {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "PPid:" {
			if pid, err := strconv.Atoi(f[1]); err == nil && pid > 1 {
				return pid
			}
		}
	}
	t.Fatalf("etcd has no parent: %s", stat)
	return 0
}

func (e env) inits(t *testing.T, nodes int) []int {
	t.Helper()
	var pids []int
	for i := 1; i <= nodes; i++ {
		pids = append(pids, e.pid(t, fmt.Sprintf("node-n%d", i)))
	}
	return pids
}

func killAll(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// processes lists the processes of any cluster.
func processes(t *testing.T) []string {
	t.Helper()
	left, err := leftovers()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(left, func(line string) bool { return !strings.HasPrefix(line, "process: ") })
}

// TestSilentAPIServer: while the API server does not answer, neither status nor up says that the cluster is up.
func TestSilentAPIServer(t *testing.T) {
	pid := pidOf(t, "host", "kube-apiserver")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT)
	if out, err := cluster.command(time.Minute, "bonsai", "--data-dir", cluster.data, "status"); err == nil ||
		!strings.Contains(out, "the API server does not answer") {
		t.Errorf("status: %s, %v", out, err)
	}
	up := append(cluster.upArgs(), "--wait", "3s")
	if out, err := cluster.command(time.Minute, "bonsai", up...); err == nil || strings.Contains(out, "already up") ||
		!strings.Contains(out, "the API server does not answer") {
		t.Errorf("up: %s, %v", out, err)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if out, err := cluster.command(3*time.Minute, "bonsai", cluster.upArgs()...); err != nil {
		t.Errorf("up afterwards: %s, %v", out, err)
	}
}

// TestUnfinishedStart: an `up` that ends early leaves a cluster whose nodes become Ready without it. The next one takes
// the steps that are left, though all is Ready.
func TestUnfinishedStart(t *testing.T) {
	e := beside(t, "unfinished")
	args := []string{"--data-dir", e.data, "--name", "unfinished", "up", "--egress=false"}
	up := exec.Command(filepath.Join(e.bin, "bonsai"), args...)
	up.Env = append(os.Environ(), "HOME="+e.home, "KUBECONFIG="+e.kubeconfig)
	steps, err := up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(steps); lines.Scan(); {
		if strings.Contains(lines.Text(), "Install the add-ons") {
			break
		}
	}
	if err := up.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := up.Wait(); err == nil {
		t.Fatal("up was too quick to be killed")
	}
	until(t, "the nodes are Ready", func() (bool, string) {
		out, err := e.command(time.Minute, "bonsai", "--data-dir", e.data, "status")
		return err == nil, out
	})
	out := e.must(t, "bonsai", args...)
	if !strings.Contains(out, "its start is not finished") || !strings.Contains(out, "Wait for the cluster's DNS") {
		t.Errorf("up again: %s", out)
	}
	if out := e.must(t, "kubectl", "config", "current-context"); !strings.Contains(out, "bonsai-unfinished") {
		t.Errorf("the context is %q", out)
	}
	if out := e.must(t, "bonsai", args...); !strings.Contains(out, "already up") {
		t.Errorf("up once more: %s", out)
	}
}

// TestFullDisk: up on a full disk says so at once and makes nothing.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("SKIPPED: cannot mount: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	out, err := cluster.command(20*time.Second, "bonsai", "--data-dir", filepath.Join(dir, "data"), "up")
	if err == nil || !strings.Contains(out, "no space left on device") {
		t.Errorf("%s, %v", out, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("left: %v, %v", files, err)
	}
}
