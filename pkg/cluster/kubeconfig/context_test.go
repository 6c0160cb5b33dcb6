package kubeconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestContext: the context comes into the user's kubeconfig beside what is there, and leaves it as it was.
func TestContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "config")
	t.Setenv("KUBECONFIG", path)
	c := plantest.Config(t)
	if err := pki.Make(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := Export(t.Context(), c, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := Remove(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a file with nothing in it is left: %v", err)
	}
	mine := clientcmdapi.NewConfig()
	mine.Clusters["work"] = &clientcmdapi.Cluster{Server: "https://work.example"}
	mine.AuthInfos["work"] = &clientcmdapi.AuthInfo{Token: "t"}
	mine.Contexts["work"] = &clientcmdapi.Context{Cluster: "work", AuthInfo: "work"}
	mine.CurrentContext = "work"
	if err := clientcmd.WriteToFile(*mine, path); err != nil {
		t.Fatal(err)
	}
	if err := Export(t.Context(), c, io.Discard); err != nil {
		t.Fatal(err)
	}
	both, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if both.CurrentContext != "bonsai" || both.Clusters["bonsai"].Server != "https://127.0.0.1:6443" ||
		both.AuthInfos["work"].Token != "t" {
		t.Errorf("after up: %+v", both)
	}
	if err := Remove(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	after, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if after.Contexts["bonsai"] != nil || after.Contexts["work"] == nil || after.CurrentContext != "" {
		t.Errorf("after down: %+v", after)
	}
}

// TestContextOfAnother: a context that has become another cluster's stays when this one goes.
func TestContextOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", path)
	first, second := plantest.Config(t), plantest.Config(t)
	for _, c := range []plan.Config{first, second} {
		if err := pki.Make(c, time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := Export(t.Context(), c, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Remove(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the second cluster's context was touched: %v\n%s", err, after)
	}
	if err := Remove(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the context is left: %v", err)
	}
}

// TestContextOnFullDisk: a kubeconfig that there is no room to write stays as it is, with the contexts of others. A
// link stays one, and the file its owner's.
func TestContextOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	disk := filepath.Join(dir, "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("SKIPPED: cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	path, target := filepath.Join(dir, "config"), filepath.Join(disk, "config")
	t.Setenv("KUBECONFIG", path)
	mine := clientcmdapi.NewConfig()
	mine.AuthInfos["work"] = &clientcmdapi.AuthInfo{Token: strings.Repeat("t", 3000)}
	mine.Contexts["work"] = &clientcmdapi.Context{Cluster: "work", AuthInfo: "work"}
	if err := clientcmd.WriteToFile(*mine, target); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(target, path), os.Chmod(target, 0o640), os.Chown(target, 12, 34)); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the disk is not small")
	}
	c := plantest.Config(t)
	if err := pki.Make(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := Export(t.Context(), c, io.Discard); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("on a full disk the kubeconfig was changed: %d bytes of %d, %v", len(after), len(before), err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := Export(t.Context(), c, io.Discard); err != nil {
		t.Error(err)
	}
	if to, err := os.Readlink(path); err != nil || to != target {
		t.Errorf("the link leads to %q: %v", to, err)
	}
	info, err := os.Stat(target)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); info.Mode() != 0o600 || owner.Uid != 12 || owner.Gid != 34 {
		t.Errorf("%s of %d:%d", info.Mode(), owner.Uid, owner.Gid)
	}
	if left, err := filepath.Glob(filepath.Join(disk, "*")); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestContextsAtOnce: clusters that come up at once all have their contexts, and who holds the lock is waited for,
// but not forever.
func TestContextsAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", path)
	const clusters = 8
	var writes sync.WaitGroup
	for i := range clusters {
		writes.Go(func() {
			if err := userFileNow().change(t.Context(), asItWas, func(k *clientcmdapi.Config) {
				k.Contexts[fmt.Sprint("c", i)] = &clientcmdapi.Context{Cluster: "x"}
			}); err != nil {
				t.Error(err)
			}
		})
	}
	writes.Wait()
	if k, err := User(); err != nil || len(k.Contexts) != clusters {
		t.Errorf("%d contexts of %d, %v", len(k.Contexts), clusters, err)
	}
	unlock, err := lockKubeconfig(t.Context(), path, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockKubeconfig(t.Context(), path, 50*time.Millisecond); err == nil ||
		!strings.Contains(err.Error(), path+".lock") {
		t.Errorf("a lock that somebody has: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

func TestKubeconfigs(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	if err := pki.Make(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := WriteAll(c); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"admin", "controller-manager", "scheduler", "kubelet-n1", "proxy-n2"} {
		config, err := clientcmd.BuildConfigFromFlags("", c.Layout().Kubeconfig(name))
		if err != nil || len(config.CertData) == 0 || len(config.KeyData) == 0 || len(config.CAData) == 0 {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(c.Layout().Kubeconfig(name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
}

// TestKubeconfigMode: nobody but its owner reads a file that gets the administrator's key, unless the user says
// otherwise; a file that gets nothing stays as open as it was.
func TestKubeconfigMode(t *testing.T) {
	for name, c := range map[string]struct {
		was, asked, want fs.FileMode
		warns            bool
	}{
		"new": {0, 0, 0o600, false}, "new, asked for": {0, 0o640, 0o640, false}, "open": {0o644, 0, 0o600, true},
		"open, asked for": {0o644, 0o644, 0o644, false},
		"to the group":    {0o640, 0, 0o600, true}, "closed": {0o600, 0, 0o600, false},
		"read only": {0o400, 0, 0o400, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config")
			t.Setenv("KUBECONFIG", path)
			cfg := plantest.Config(t)
			cfg.KubeconfigMode = c.asked
			if err := pki.Make(cfg, time.Now()); err != nil {
				t.Fatal(err)
			}
			if c.was != 0 {
				mine := clientcmdapi.NewConfig()
				mine.Contexts["work"] = &clientcmdapi.Context{Cluster: "work"}
				if err := errors.Join(clientcmd.WriteToFile(*mine, path), os.Chmod(path, c.was)); err != nil {
					t.Fatal(err)
				}
			}
			var out strings.Builder
			for range 2 {
				if err := Export(t.Context(), cfg, &out); err != nil {
					t.Fatal(err)
				}
				if got := modeOf(path); got != c.want {
					t.Errorf("its mode is %#o, want %#o", got, c.want)
				}
			}
			if n := strings.Count(out.String(), path); (n == 1) != c.warns || n > 1 {
				t.Errorf("the user hears %q", out.String())
			}
			if c.was == 0 {
				return
			}
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := Export(t.Context(), cfg, &out); err != nil || modeOf(path) != c.want && modeOf(path) != 0o600 {
				t.Errorf("opened afterwards: %#o, %v", modeOf(path), err)
			}
			if err := errors.Join(os.Chmod(path, 0o644), Remove(t.Context(), cfg)); err != nil ||
				modeOf(path) != 0o644 {
				t.Errorf("after the cluster is gone: %#o, %v", modeOf(path), err)
			}
		})
	}
}

// TestEmptiedLink: a kubeconfig that is left with nothing in it is removed. Where it is a link, what it leads to is
// emptied: it has the key.
func TestEmptiedLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, target := userFile{path: filepath.Join(dir, "config")}, filepath.Join(dir, "real")
	if err := os.Symlink("real", file.path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	add := func(k *clientcmdapi.Config) { k.AuthInfos["x"] = &clientcmdapi.AuthInfo{Token: "secret"} }
	remove := func(k *clientcmdapi.Config) { delete(k.AuthInfos, "x") }
	for _, change := range []func(*clientcmdapi.Config){add, remove} {
		if err := file.change(t.Context(), asItWas, change); err != nil {
			t.Fatal(err)
		}
	}
	if to, err := os.Readlink(file.path); err != nil || to != "real" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if data, err := os.ReadFile(target); err != nil || bytes.Contains(data, []byte("secret")) {
		t.Errorf("%s, %v", data, err)
	}
	plain := userFile{path: filepath.Join(dir, "plain")}
	for _, change := range []func(*clientcmdapi.Config){add, remove} {
		if err := plain.change(t.Context(), func(was fs.FileMode) fs.FileMode {
			return kubeconfigMode(plan.Config{}, was)
		}, change); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(plain.path); !os.IsNotExist(err) {
		t.Errorf("the empty file: %v", err)
	}
}
