package cluster

import (
	"bytes"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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
		"no sudo":        {0, nil, own},
		"by sudo":        {0, map[string]string{"SUDO_UID": "1000"}, "/home/ann/.kube/config"},
		"root by sudo":   {0, map[string]string{"SUDO_UID": "0"}, own},
		"to another":     {1001, map[string]string{"SUDO_UID": "1000"}, own},
		"unknown":        {0, map[string]string{"SUDO_UID": "7"}, own},
		"said otherwise": {0, map[string]string{"SUDO_UID": "1000", "KUBECONFIG": "/x"}, own},
	} {
		got := chooseUserFile(tc.euid, func(key string) string { return tc.env[key] }, func(uid string) (*user.User, error) {
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

// TestCallersFile: what is made is the caller's, and a link leads to no file that the caller may not write.
func TestCallersFile(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("root alone can act for another user")
	}
	home := t.TempDir()
	caller := &sudoCaller{"nobody", 65534, 65534}
	if err := errors.Join(os.Chmod(filepath.Dir(home), 0o755), os.Chown(home, caller.uid, caller.gid)); err != nil {
		t.Fatal(err)
	}
	file := userFile{filepath.Join(home, ".kube", "config"), caller}
	add := func(k *clientcmdapi.Config) { k.Contexts["x"] = &clientcmdapi.Context{Cluster: "x"} }
	if err := file.change(t.Context(), Config{}.kubeconfigMode, add); err != nil {
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
	secret := filepath.Join(t.TempDir(), "roots") // its directory is root's
	if err := errors.Join(os.WriteFile(secret, nil, 0o644), os.Remove(file.path), os.Symlink(secret, file.path)); err != nil {
		t.Fatal(err)
	}
	if err := file.change(t.Context(), Config{}.kubeconfigMode, add); err == nil {
		t.Error("root wrote where the caller may not")
	}
	if data, err := os.ReadFile(secret); err != nil || !bytes.Equal(data, nil) {
		t.Errorf("%q, %v", data, err)
	}
	if err := os.WriteFile(filepath.Join(t.TempDir(), "f"), nil, 0o600); err != nil {
		t.Errorf("root has its rights no more: %v", err)
	}
}
