package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// common is the repository of the image that most specs use, by far the largest of the suite.
const common = "e2e-test-images/agnhost"

// pullingPods is a DaemonSet in which every node runs a container of an image.
const pullingPods = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: pull-first, namespace: kube-system}
spec:
  selector: {matchLabels: {app: pull-first}}
  template:
    metadata: {labels: {app: pull-first}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: c, image: "registry.k8s.io/IMAGE", args: [pause]}]
`

// pullFirst returns when every node has the common image. A node that is 20 times slower than others needs longer to
// unpack it than a spec waits for a pod. All tags of the image have the same layers, so that any of them will do.
func (s settings) pullFirst(ctx context.Context, c *clusterUnderTest) error {
	if !s.pull {
		return nil
	}
	tags, err := filepath.Glob(filepath.Join(s.imageTree(), "docker/registry/v2/repositories", common,
		"_manifests/tags/*"))
	if err != nil || len(tags) == 0 {
		return fmt.Errorf("-pull-first: the suite has no image %s: %v", common, err)
	}
	manifest := strings.ReplaceAll(pullingPods, "IMAGE", common+":"+filepath.Base(tags[0]))
	for _, args := range [][]string{
		{"apply", "-f", "-"},
		{"rollout", "status", "daemonset/pull-first", "-n", "kube-system", "--timeout=" + s.timeout.String()},
		{"delete", "--timeout=10m", "-f", "-"},
	} {
		cmd := exec.CommandContext(ctx, c.kubectl, append([]string{"--kubeconfig", c.kubeconfig}, args...)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(manifest), os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("-pull-first: kubectl %s: %w", args[0], err)
		}
	}
	return nil
}
