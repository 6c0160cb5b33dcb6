package cluster

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/logs"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
)

// ExportLogs writes the logs and the state of the cluster in dataDir, running or not, into the new directory to, for a
// bug report (logs.Export).
func ExportLogs(ctx context.Context, dataDir, to string) error {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return err
	}
	return logs.Export(ctx, c, to, func(w io.Writer) error { return PrintStatus(ctx, dataDir, w) },
		func(w io.Writer) error { return PrintVersions(ctx, c.BinDir, w) })
}

// PrintVersions prints the versions of the programs on which a cluster with its binaries in binDir runs, and of the
// kernel.
func PrintVersions(ctx context.Context, binDir string, out io.Writer) error {
	node := node.Config{BinDir: binDir}
	c := plan.Config{BinDir: binDir}
	for _, program := range []struct{ name, path string }{{"etcd", c.Bin("etcd")}, {"containerd", node.Containerd()},
		{"runc", "runc"}, {"kernel", "uname"}} {
		arg := "--version"
		if program.name == "kernel" {
			arg = "-r"
		}
		version, err := exec.CommandContext(ctx, program.path, arg).Output()
		line, _, _ := strings.Cut(strings.TrimSpace(string(version)), "\n")
		if err != nil {
			line = err.Error()
		}
		if _, err := fmt.Fprintf(out, "%-12s %s\n", program.name, line); err != nil {
			return err
		}
	}
	return nil
}
