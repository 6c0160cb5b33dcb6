// Package e2e tries the whole product from outside: real binaries, a real etcd, a real containerd, real packets. It
// starts a cluster of two nodes of its own, tries it as its users do, and checks that nothing is left when it is gone.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// env is the cluster under test.
type env struct {
	bin        string // directory of the binaries
	data       string // the cluster's data directory
	home       string // HOME of the commands, with the user's kubeconfig
	kubeconfig string
}

// long adds the tests that take minutes, and gives the cluster all add-ons.
var (
	long = flag.Bool("long", false, "run the long tests, too, on a cluster with all add-ons (make addons)")
	slow = flag.Int("slow", 1, "how many times slower than usual the machine is; every wait is bounded so much later")
)

// isLong skips a test that takes minutes or needs add-ons, unless they are wanted.
func isLong(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("SKIPPED: a long test; run `make e2e-long`")
	}
}

// cluster is set once by TestMain before any test runs.
var cluster env

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		fmt.Println("SKIPPED: the end-to-end tests need root (nodes are network and mount namespaces); run `sudo make e2e`")
		os.Exit(0)
	}
	flag.Parse()
	// Some administrators have such a mask; pods of other users must work all the same.
	syscall.Umask(0o077)
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "bonsai-e2e-")
	if err != nil {
		return 0, err
	}
	bin := filepath.Join(root, "bin")
	if other := os.Getenv("BONSAI_BIN"); other != "" { // other binaries, for example with a containerd beside them
		bin = other
	}
	cluster = env{bin: bin, data: filepath.Join(dir, "data"), home: filepath.Join(dir, "home"),
		kubeconfig: filepath.Join(dir, "home", ".kube", "config")}
	others, err := alone()
	if err != nil {
		return 0, err
	}
	defer others.Close()
	if err := takeDownOrphans(); err != nil {
		return 0, err
	}
	before, err := leftovers()
	if err != nil {
		return 0, err
	}
	if len(before) > 0 {
		return 0, fmt.Errorf("another cluster is up or was not taken down (bonsai down): %v", before)
	}
	defer func() {
		if err == nil && code == 0 {
			os.RemoveAll(dir)
		} else {
			fmt.Println("the cluster's logs are kept in", filepath.Join(dir, "logs"))
		}
	}()
	began := time.Now()
	out, err := cluster.command(3*time.Minute, "bonsai", cluster.upArgs()...)
	fmt.Printf("%s(bonsai up: %.2f s)\n", out, time.Since(began).Seconds())
	if err == nil {
		code = m.Run()
	}
	if kept := exec.Command("cp", "-r", filepath.Join(cluster.data, "logs"), dir).Run(); kept != nil {
		fmt.Println("cannot keep the logs:", kept)
	}
	out, downErr := cluster.command(2*time.Minute, "bonsai", "--data-dir", cluster.data, "down")
	fmt.Print(out)
	if err != nil || downErr != nil {
		return 1, fmt.Errorf("bonsai up: %v, bonsai down: %v", err, downErr)
	}
	after, err := leftovers()
	if err == nil && len(after) > 0 {
		err = fmt.Errorf("`bonsai down` left behind: %v", after)
	}
	if _, statErr := os.Stat(cluster.data); err == nil && !os.IsNotExist(statErr) {
		err = fmt.Errorf("`bonsai down` left the data directory: %v", statErr)
	}
	return code, err
}

func (e env) upArgs() []string {
	args := []string{"--data-dir", e.data, "up", "--nodes", "2", "--egress=false",
		"--wait", fmt.Sprintf("%dm", 2**slow)}
	if *long {
		args = append(args, "--addons=metrics-server,registry,traefik")
	}
	return args
}

// command runs one of our binaries (or any absolute path) as the user of the cluster and returns what it printed.
func (e env) command(timeout time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), here(timeout))
	defer cancel()
	if !filepath.IsAbs(name) {
		name = filepath.Join(e.bin, name)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	// A login by ssh has such a directory, and no node has it.
	cmd.Env = append(os.Environ(), "HOME="+e.home, "KUBECONFIG="+e.kubeconfig, "XDG_RUNTIME_DIR="+e.home+"/session")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %v: %w: %s", filepath.Base(name), args, err, out)
	}
	return string(out), err
}
