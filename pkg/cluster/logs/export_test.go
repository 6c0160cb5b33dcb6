package logs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestExport: a bug report has the logs and the configuration, and no key, token or password.
func TestExport(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	c.Mirrors = []plan.Mirror{{Registry: plan.EveryRegistry, URL: "https://me:hunter2@registry.example"}}
	c.ComponentFlags = map[string]map[string]string{"kube-apiserver": {"v": "4", "etcd-password": "hunter2"}}
	if err := datadir.Save(c); err != nil {
		t.Fatal(err)
	}
	if err := pki.Make(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := kubeconfig.WriteAll(c); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{"logs/etcd.log": "an etcd", "logs/etcd.log.1": "an older etcd",
		"logs/n1/kubelet.log": "a kubelet", "nodes/n1/log/pods/p/c/0.log": "a container",
		"nodes/n1/etc/kubelet.yaml": "kind: x"} {
		if err := host.WriteFile(c.Layout().At(path), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(t.TempDir(), "report")
	export := func() error {
		return Export(t.Context(), c, to, func(io.Writer) error {
			return errors.New("the cluster is not running")
		}, func(w io.Writer) error { return nil })
	}
	if err := export(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err != nil || info.Mode()&0o077 != 0 {
			t.Errorf("others may read %s: %v, %v", path, info.Mode(), err)
		}
		if d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		all.WriteString(strings.TrimPrefix(path, to) + "\n" + string(data) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/logs/etcd.log\nan etcd", "/logs/etcd.log.1\nan older",
		"/logs/n1/kubelet.log\na kubelet", "/n1/pods/p/c/0.log\na container", "/n1/kubelet.yaml", "/status.txt",
		"is not running", "/versions.txt", `"v": "4"`} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no %q in the report", want)
		}
	}
	for _, secret := range []string{"hunter2", "PRIVATE KEY", "CERTIFICATE", "client-key-data"} {
		if strings.Contains(all.String(), secret) {
			t.Errorf("%q is in the report", secret)
		}
	}
	if err := export(); err == nil {
		t.Error("it wrote into a directory that was there")
	}
	// An interrupt breaks off what asks the cluster: the report is not whole.
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	err = Export(ctx, c, filepath.Join(t.TempDir(), "report"), func(io.Writer) error {
		interrupt(interrupted)
		return ctx.Err()
	}, func(io.Writer) error { return nil })
	if !errors.Is(err, interrupted) {
		t.Errorf("an interrupted report: %v", err)
	}
}

// TestCopyFile: what a pod puts in a log's place leads out of the logs to nothing, and keeps nobody waiting.
func TestCopyFile(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "key")
	in := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.WriteFile(outside, []byte("secret"), 0o600), os.WriteFile(in("log"), []byte("text"), 0o600),
		os.Symlink(outside, in("link")), os.Symlink(filepath.Dir(outside), in("dir")),
		syscall.Mkfifo(in("pipe"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	to := t.TempDir()
	for _, name := range []string{"log", "link", "dir/key", "pipe", "none"} {
		if err := copyFile(root, name, filepath.Join(to, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if copied, err := os.ReadDir(to); err != nil || len(copied) != 1 || copied[0].Name() != "log" {
		t.Errorf("copied %v, %v", copied, err)
	}
}
