package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
)

// ExportLogs writes into a new directory what somebody else needs to understand the cluster in dataDir, running or not:
// the logs of processes and containers, the configuration, and the state, for its owner alone: containers may say
// anything. Keys, certificates, kubeconfigs, etcd's data and volumes are left out, and so are the values of flags and
// URLs that are secrets.
func ExportLogs(ctx context.Context, dataDir, to string) error {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	l := c.Layout()
	parts := map[string]string{l.At("logs"): "logs"}
	for _, node := range c.Nodes {
		n := node.Name()
		parts[l.Node(n, "log", "pods")] = filepath.Join(n, "pods")
		for _, file := range []string{"kubelet.yaml", "containerd.toml", "resolv.conf"} {
			parts[l.Node(n, "etc", file)] = filepath.Join(n, file)
		}
	}
	var errs []error
	for from, name := range parts {
		errs = append(errs, host.IgnoreMissing(copyOwn(from, filepath.Join(to, name))))
	}
	config, err := json.MarshalIndent(c.WithoutSecrets(), "", "  ")
	if err != nil {
		return err
	}
	errs = append(errs, os.WriteFile(filepath.Join(to, "cluster.json"), config, 0o600))
	// What cannot be found out is a finding, too.
	record := func(name string, write func(io.Writer) error) {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			fmt.Fprintf(&out, "\n%v\n", err)
		}
		errs = append(errs, os.WriteFile(filepath.Join(to, name), out.Bytes(), 0o600))
	}
	record("status.txt", func(w io.Writer) error { return PrintStatus(ctx, dataDir, w) })
	record("versions.txt", func(w io.Writer) error { return PrintVersions(ctx, c.BinDir, w) })
	for name, args := range map[string][]string{
		"objects.txt": {"get", "nodes,pods,services,deployments,daemonsets,statefulsets,jobs,persistentvolumeclaims",
			"-A", "-o", "wide"},
		"events.txt": {"get", "events", "-A", "--sort-by=.metadata.creationTimestamp"},
		"nodes.txt":  {"describe", "nodes"},
	} {
		record(name, func(w io.Writer) error {
			cmd := exec.CommandContext(ctx, c.Bin("kubectl"),
				append([]string{"--kubeconfig=" + l.Kubeconfig(plan.Administrator), "--request-timeout=5s"},
					args...)...)
			cmd.Stdout, cmd.Stderr = w, w
			return cmd.Run()
		})
	}
	return errors.Join(errs...)
}

// copyOwn copies a file, or the files and directories below one, for whoever does it alone to read. What is neither, as
// the links of a container's log, is left out.
func copyOwn(from, to string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return host.IgnoreMissing(err) // a log may go while we look
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		in, err := os.Open(path)
		if err != nil {
			return host.IgnoreMissing(err)
		}
		defer in.Close()
		out, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		return errors.Join(err, out.Close())
	})
}

// PrintVersions prints the versions of the programs that a cluster with its binaries in binDir runs on.
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
