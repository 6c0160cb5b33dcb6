package logs

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
	"syscall"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// Export writes into the new directory to everything that somebody else needs to understand the cluster, running or
// not: the logs of processes and containers, the configuration, and the state. Only the caller may read the files,
// because containers may log anything. Export leaves out keys, certificates, kubeconfigs, etcd's data, volumes, and the
// values of flags and URLs that are secrets.
//
// status and versions print the files of these names. An error of theirs goes into the file: it says something about
// the cluster, too. But if ctx ends, Export returns its cause: the report is not whole.
func Export(ctx context.Context, c plan.Config, to string, status, versions func(io.Writer) error) error {
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
	// A part that cannot be copied must not cost the user the others.
	var errs []error
	for from, name := range parts {
		errs = append(errs, host.IgnoreMissing(copyOwn(from, filepath.Join(to, name))))
	}
	config, err := json.MarshalIndent(plan.WithoutSecrets(c), "", "  ")
	if err != nil {
		return err
	}
	errs = append(errs, os.WriteFile(filepath.Join(to, "cluster.json"), config, 0o600))
	// Each file is written whole, with the error below the output that came before it.
	record := func(name string, write func(io.Writer) error) {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			fmt.Fprintf(&out, "\n%v\n", err)
		}
		errs = append(errs, os.WriteFile(filepath.Join(to, name), out.Bytes(), 0o600))
	}
	record("status.txt", status)
	record("versions.txt", versions)
	for name, args := range map[string][]string{
		"objects.txt": {"get", "nodes,pods,services,deployments,daemonsets,statefulsets,jobs,persistentvolumeclaims",
			"-A", "-o", "wide"},
		"events.txt": {"get", "events", "-A", "--sort-by=.metadata.creationTimestamp"},
		"nodes.txt":  {"describe", "nodes"},
	} {
		record(name, func(w io.Writer) error {
			// A paused or stopped cluster must not keep the user waiting.
			cmd := exec.CommandContext(ctx, c.Bin("kubectl"),
				append([]string{"--kubeconfig=" + l.Kubeconfig(plan.Administrator), "--request-timeout=5s"},
					args...)...)
			cmd.Stdout, cmd.Stderr = w, w
			return cmd.Run()
		})
	}
	return errors.Join(append(errs, context.Cause(ctx))...)
}

// mostCopied bounds the copy of one file, in bytes. A pod that writes to /var/log may have put a file without an end
// there.
const mostCopied = 256 << 20

// copyOwn copies a file, or the files and directories below a directory. Only the caller may read the copies. It leaves
// out everything else, such as the links to a container's log.
func copyOwn(from, to string) error {
	top := from
	if info, err := os.Lstat(from); err != nil {
		return host.IgnoreMissing(err)
	} else if !info.IsDir() {
		top = filepath.Dir(from)
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return host.IgnoreMissing(err)
	}
	defer root.Close()
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
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		return copyFile(root, name, target)
	})
}

// copyFile copies a file below root if it is a regular one. A pod may have put a link or a pipe in its place since
// somebody has looked: nothing outside of root is read, and nothing is waited for.
func copyFile(root *os.Root, name, target string) error {
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return nil // it has gone, or is not below root any more
	}
	in, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, mostCopied))
	return errors.Join(err, out.Close())
}
