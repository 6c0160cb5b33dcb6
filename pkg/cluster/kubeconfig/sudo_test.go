package kubeconfig

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/cluster/plan"
)

// TestChooseUserFile: by sudo the context is for who called it, unless $KUBECONFIG says where it goes.
func TestChooseUserFile(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	own := clientcmd.NewDefaultPathOptions().GetDefaultFilename()
	for name, tc := range map[string]struct {
		euid int
		env  map[string]string
		want string
	}{
		"no sudo":               {0, nil, own},
		"by sudo":               {0, map[string]string{"SUDO_UID": "1000"}, "/home/ann/.kube/config"},
		"root by sudo":          {0, map[string]string{"SUDO_UID": "0"}, own},
		"to another":            {1001, map[string]string{"SUDO_UID": "1000"}, own},
		"unknown":               {0, map[string]string{"SUDO_UID": "7"}, own},
		"a directory of root's": {0, map[string]string{"SUDO_UID": "1000", "KUBECONFIG": "/x/config"}, own},
	} {
		got := chooseUserFile(tc.euid, func(key string) string {
			return tc.env[key]
		}, func(uid string) (*user.User, error) {
			if uid != "1000" {
				return nil, errors.New("unknown")
			}
			return &user.User{Uid: uid, Gid: "100", Username: "ann", HomeDir: "/home/ann"}, nil
		})
		if got.path != tc.want || (got.caller != nil) != (tc.want != own) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestChooseOwnVariable: a file that $KUBECONFIG names is the caller's where its directory is, so that kubectl can
// use it without sudo (sudo -E).
func TestChooseOwnVariable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root, which alone can act for another user")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	lookup := func(string) (*user.User, error) {
		return &user.User{Uid: "65534", Gid: "65534", Username: "nobody", HomeDir: "/nonexistent"}, nil
	}
	for path, want := range map[string]bool{dir + "/config": true, dir + "/new/config": true,
		t.TempDir() + "/config": false, "/config": false} {
		t.Setenv("KUBECONFIG", path)
		got := chooseUserFile(0, func(key string) string {
			return map[string]string{"SUDO_UID": "65534", "KUBECONFIG": path}[key]
		}, lookup)
		if got.path != path || (got.caller != nil) != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// TestCallersFile: what is made is the caller's, and a link leads to no file that the caller may not write.
func TestCallersFile(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("root alone can act for another user")
	}
	home := t.TempDir()
	caller := &sudoCaller{"nobody", 65534, 65534, nil}
	if err := errors.Join(os.Chmod(filepath.Dir(home), 0o755), os.Chown(home, caller.uid, caller.gid)); err != nil {
		t.Fatal(err)
	}
	file := userFile{filepath.Join(home, ".kube", "config"), caller}
	add := func(k *clientcmdapi.Config) { k.Contexts["x"] = &clientcmdapi.Context{Cluster: "x"} }
	if err := file.change(t.Context(), func(was fs.FileMode) fs.FileMode {
		return kubeconfigMode(plan.Config{}, was)
	}, add); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file.path, filepath.Dir(file.path)} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if of := info.Sys().(*syscall.Stat_t); int(of.Uid) != caller.uid || int(of.Gid) != caller.gid {
			t.Errorf("%s is of %d:%d", path, of.Uid, of.Gid)
		}
	}
	if modeOf(file.path) != ownerOnly {
		t.Errorf("mode %o", modeOf(file.path))
	}
	if err := file.check(t.Context()); err != nil {
		t.Errorf("a file of the caller's: %v", err)
	}
	secret := filepath.Join(t.TempDir(), "roots") // its directory is root's
	if err := errors.Join(os.WriteFile(secret, nil, 0o644), os.Remove(file.path),
		os.Symlink(secret, file.path)); err != nil {
		t.Fatal(err)
	}
	if err := file.change(t.Context(), func(was fs.FileMode) fs.FileMode {
		return kubeconfigMode(plan.Config{}, was)
	}, add); err == nil {
		t.Error("root wrote where the caller may not")
	}
	if err := file.check(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "Run: sudo chown -R nobody: "+filepath.Dir(file.path)) {
		t.Errorf("a file of root's: %v", err)
	}
	if data, err := os.ReadFile(secret); err != nil || !bytes.Equal(data, nil) {
		t.Errorf("%q, %v", data, err)
	}
	// Root's groups, which sudo gives this program, are not the caller's, either.
	if err := unix.Setgroups([]int{0}); err != nil {
		t.Fatal(err)
	}
	shared, kube := t.TempDir(), filepath.Dir(file.path)
	if err := errors.Join(os.Chmod(filepath.Dir(shared), 0o755), os.Chmod(shared, 0o775), os.RemoveAll(kube),
		os.Symlink(shared, kube)); err != nil {
		t.Fatal(err)
	}
	if err := file.change(t.Context(), func(was fs.FileMode) fs.FileMode {
		return kubeconfigMode(plan.Config{}, was)
	}, add); err == nil {
		t.Error("root wrote where its group may and the caller may not")
	}
	if made, err := os.ReadDir(shared); err != nil || len(made) > 0 {
		t.Errorf("made: %v, %v", made, err)
	}
	if err := os.WriteFile(filepath.Join(t.TempDir(), "f"), nil, 0o600); err != nil {
		t.Errorf("root has its rights no more: %v", err)
	}
}
