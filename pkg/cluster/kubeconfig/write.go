package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/cluster/host"
)

// kubeconfigPatience bounds the wait for the kubeconfig's lock. Other programs hold it while they write one file.
const kubeconfigPatience = 5 * time.Second

// lockKubeconfig waits for the lock that client-go takes to write a kubeconfig: a file beside it, which belongs to its
// creator. A program that was killed leaves it, so the error says what to remove.
func lockKubeconfig(ctx context.Context, path string, patience time.Duration) (unlock func() error, err error) {
	lock := path + ".lock"
	if err := os.MkdirAll(filepath.Dir(lock), 0o755); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = host.Poll(ctx, 20*time.Millisecond, func() (bool, error) {
		// O_EXCL makes the file the lock: only one process can create it.
		f, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0)
		if errors.Is(err, fs.ErrExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return true, f.Close()
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("lock the kubeconfig: %w: if no kubectl runs, remove %s", err, lock)
	case err != nil:
		return nil, fmt.Errorf("lock the kubeconfig: %w", err)
	}
	return func() error { return os.Remove(lock) }, nil
}

// writeUserKubeconfig writes a user's kubeconfig, or removes the file if nothing is left in it.
func writeUserKubeconfig(path string, k *clientcmdapi.Config, mode fs.FileMode) error {
	_, noLink := os.Readlink(path)
	if len(k.Clusters)+len(k.AuthInfos)+len(k.Contexts) == 0 && noLink != nil { // a link's target would keep the key
		return host.IgnoreMissing(os.Remove(path))
	}
	data, err := clientcmd.Write(*k)
	if err != nil {
		return err
	}
	if err := replaceUserFile(path, data, mode); err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return nil
}

// replaceUserFile writes a user's file whole or not at all: it may have contexts that are nowhere else, and the disk
// may be full. It follows a link, and the file keeps its owner.
//
// The new file is beside the old one, because a rename works within one file system only, and is synced before the
// rename, so that a power failure leaves one of the two whole.
func replaceUserFile(path string, data []byte, mode fs.FileMode) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once renamed
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode))
	if info, statErr := os.Stat(path); statErr == nil && err == nil {
		owner := info.Sys().(*syscall.Stat_t)
		err = f.Chown(int(owner.Uid), int(owner.Gid))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	err = os.Rename(f.Name(), path)
	if errors.Is(err, syscall.EBUSY) { // a mount point, as in a container, can only be written
		err = errors.Join(os.WriteFile(path, data, mode), os.Chmod(path, mode))
	}
	return err
}
