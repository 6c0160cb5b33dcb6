// Package compose tries the cluster of deploy/compose on a Docker engine that it starts and stops itself.
package compose

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long one thing may take, on a machine that has other work.
const patience = 5 * time.Minute

const skipped = "SKIPPED: the cluster of containers was NOT tested"

// docker is the engine, and tool what its users call: `docker compose` or `docker-compose`, with its files.
var (
	docker *engine
	tool   []string
	root   string // of the repository
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run starts the engine, runs the tests, and stops it.
func run(m *testing.M) (code int, err error) {
	if why := missing(); why != "" {
		fmt.Printf("%s: %s\n", skipped, why)
		return 0, nil
	}
	if root, err = filepath.Abs("../.."); err != nil {
		return 0, err
	}
	// Containers' layers and images are too much for a /tmp in memory; a socket's path is short.
	dir, err := os.MkdirTemp("/var/tmp", "bonsai-compose-")
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	docker = &engine{dir: dir, namespace: fmt.Sprintf("bonsai-compose-%d", os.Getpid())}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if left := docker.close(ctx); err == nil {
			err = left
		}
	}()
	if err := docker.connect(ctx); err != nil {
		return 0, err
	}
	if err := docker.start(ctx); err != nil {
		fmt.Printf("%s: no engine can be started: %v\n", skipped, err)
		return 0, nil
	}
	tool = append(tool, "--project-directory", filepath.Join(root, "deploy/compose"), "-f",
		filepath.Join(root, "deploy/compose/compose.yaml"))
	if !hasEveryCapability() {
		fmt.Println("NOTE: nobody has all capabilities on this machine, so no container can be privileged: nodes are those of unprivileged.yaml")
		tool = append(tool, "-f", filepath.Join(root, "deploy/compose/unprivileged.yaml"))
	}
	return m.Run(), nil
}

// missing says why the tests cannot run here, "" if they can. It finds the tool.
func missing() string {
	if os.Geteuid() != 0 {
		return "an engine of its own needs root"
	}
	for _, program := range []string{"dockerd", "docker", "containerd", "nsenter", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed (deploy/install.sh compose)"
		}
	}
	if tool = strings.Fields(os.Getenv("COMPOSE")); len(tool) > 0 {
		return ""
	}
	for _, tool = range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		if exec.Command(tool[0], append(tool[1:], "version")...).Run() == nil {
			return ""
		}
	}
	return "there is neither `docker compose` nor docker-compose (deploy/install.sh compose)"
}

// hasEveryCapability reports whether this process, and so a container that it starts, may have all capabilities of the
// kernel.
func hasEveryCapability() bool {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil { // the kernel knows no more
			return true
		}
		if has == 0 {
			return false
		}
	}
	return true
}
