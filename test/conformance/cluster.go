package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"bonsai/test/conformance/images"
)

// mirror is where the test images are served: the host's address on the nodes' network, which only this machine
// reaches.
const mirror = "10.77.0.1:5055"

// nodes is what the suite needs at least: two schedulable ones.
const nodes = 2

// clusterUnderTest is a running cluster of ours.
type clusterUnderTest struct {
	bonsai, kubeconfig, kubectl string
	dataDir                     string
	registry                    *http.Server
}

// startCluster starts a new cluster from a copy of the binaries under test (so that a build meanwhile cannot change
// what is measured), with the suite's containerd beside them, and serves the images to it.
func (s settings) startCluster(ctx context.Context) (*clusterUnderTest, error) {
	under := filepath.Join(s.data, "product")
	if err := s.copyProduct(under); err != nil {
		return nil, err
	}
	c := &clusterUnderTest{
		bonsai: filepath.Join(under, "bonsai"), kubectl: filepath.Join(under, "kubectl"),
		dataDir: s.clusterDir(), kubeconfig: filepath.Join(s.clusterDir(), "kubeconfig", "admin.conf"),
	}
	if s.upstream {
		c.kubectl = s.bin("kubectl")
	}
	if err := c.stop(ctx); err != nil { // a cluster that an earlier run kept
		return nil, err
	}
	up := []string{"up", fmt.Sprintf("--nodes=%d", nodes), "--egress=false", "--registry-mirror=http://" + mirror}
	if s.config != "" {
		up = append(up, "--config="+s.config)
	}
	if err := c.run(ctx, up...); err != nil {
		return nil, errors.Join(err, c.stop(context.WithoutCancel(ctx)))
	}
	if err := c.serve(s.imageTree()); err != nil {
		return nil, errors.Join(err, c.stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// copyProduct fills dir with the product's binaries and images and the suite's containerd.
func (s settings) copyProduct(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(s.product)); err != nil {
		return fmt.Errorf("copy the binaries under test: %w", err)
	}
	// bonsai prefers the programs of this directory to the machine's.
	runtime := filepath.Join(dir, "runtime")
	if err := os.MkdirAll(runtime, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		data, err := os.ReadFile(s.bin(name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(runtime, name), data, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (c *clusterUnderTest) run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, c.bonsai, append([]string{"--data-dir", c.dataDir}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// The user's own kubeconfig is not for a cluster that lives as long as a test.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(filepath.Dir(c.dataDir), "kubeconfig"))
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("bonsai %s: %w", args[0], err)
	}
	return nil
}

// serve answers the nodes' pulls until stop. The address exists once the cluster is up.
func (c *clusterUnderTest) serve(tree string) error {
	listener, err := net.Listen("tcp", mirror)
	if err != nil {
		return fmt.Errorf("serve the test images: %w", err)
	}
	c.registry = &http.Server{Handler: images.Handler(tree), ReadHeaderTimeout: 5 * time.Second}
	go c.registry.Serve(listener) // ends with the cluster; a pull that fails shows in the specs
	return nil
}

// stop takes the cluster away with everything it wrote but the logs of the last run.
func (c *clusterUnderTest) stop(ctx context.Context) error {
	if c.registry != nil {
		c.registry.Close()
	}
	if !exists(c.dataDir) {
		return nil
	}
	return c.run(ctx, "down")
}
