package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// nodes are the names of the cluster's nodes.
var nodes = [...]string{"n1", "n2"}

// clusterUnderTest is the cluster, its commands and a client.
type clusterUnderTest struct {
	bonsai, data, home string
	client             kubernetes.Interface
}

func newCluster(bin, dir string) (*clusterUnderTest, error) {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "bonsai-soak-"); err != nil {
			return nil, err
		}
	}
	return &clusterUnderTest{bonsai: filepath.Join(bin, "bonsai"), data: filepath.Join(dir, "data"),
		home: filepath.Join(dir, "home")}, nil
}

func (c *clusterUnderTest) up(ctx context.Context) error {
	out, err := c.command(ctx, "up", "--nodes", strconv.Itoa(len(nodes)), "--egress=false")
	fmt.Print(out)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.home, "config"))
	if err != nil {
		return err
	}
	config.QPS = -1
	c.client, err = kubernetes.NewForConfig(config)
	return err
}

// down takes the cluster away, and keeps its logs if asked to.
func (c *clusterUnderTest) down(ctx context.Context, keepLogs bool) error {
	if keepLogs {
		kept := logsBeside(c.data)
		if err := os.CopyFS(kept, os.DirFS(filepath.Join(c.data, "logs"))); err == nil {
			fmt.Println("the cluster's logs are kept in", kept)
		}
	}
	out, err := c.command(ctx, "down")
	fmt.Print(out)
	if err == nil && !keepLogs {
		err = os.RemoveAll(filepath.Dir(c.data))
	}
	return err
}

// command runs bonsai on the cluster and returns what it printed.
func (c *clusterUnderTest) command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.bonsai, append([]string{"--data-dir", c.data}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(c.home, "config"))
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("bonsai %s: %w: %s", strings.Join(args, " "), err,
			strings.TrimSpace(problem.String()))
	}
	return out.String(), nil
}

// inNode runs a command in a node's namespaces.
func (c *clusterUnderTest) inNode(ctx context.Context, node string, argv ...string) (string, error) {
	return c.command(ctx, append([]string{"exec", node, "--"}, argv...)...)
}

// pid returns a process's pid on the host; 0 while it is down.
func (c *clusterUnderTest) pid(ctx context.Context, where, process string) (int, error) {
	out, err := c.command(ctx, "status") // an error says only that not all of the cluster is up
	m := regexp.MustCompile(`(?m)^` + where + ` +` + regexp.QuoteMeta(process) + ` +(\d+) `).FindStringSubmatch(out)
	if m == nil {
		return 0, errors.Join(fmt.Errorf("bonsai status does not show %s on %s", process, where), err)
	}
	return strconv.Atoi(m[1])
}

// root is the path at which the host sees a node's file system.
func (c *clusterUnderTest) root(ctx context.Context, node string) (string, error) {
	pid, err := c.pid(ctx, "host", "node-"+node)
	if err != nil || pid == 0 {
		return "", fmt.Errorf("node %s does not run: %w", node, err)
	}
	return fmt.Sprintf("/proc/%d/root", pid), nil
}
