package kubeconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/cluster/host"
)

// User reads the user's kubeconfig. It is empty if there is none.
func User() (k *clientcmdapi.Config, err error) {
	file := userFileNow()
	err = file.caller.as(func() error {
		k, err = file.read()
		return err
	})
	return k, err
}

// read reads the kubeconfig. It is empty if there is none.
func (f userFile) read() (*clientcmdapi.Config, error) {
	path := f.path
	k, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return nil, &UnreadableError{path, f.explain(err)}
	}
	return k, nil
}

// UnreadableError is the error of a user's kubeconfig that cannot be read or parsed.
type UnreadableError struct {
	Path string
	Err  error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("read the kubeconfig %s: %v", e.Path, e.Err)
}

func (e *UnreadableError) Unwrap() error { return e.Err }

// ownerOnly is the mode of a kubeconfig that others may not read.
const ownerOnly fs.FileMode = 0o600

// asItWas keeps the mode of a kubeconfig that gets no key.
func asItWas(was fs.FileMode) fs.FileMode { return was }

// change applies change to the file under client-go's lock, with its user's rights. It writes the file only if its
// content or its mode changes, and removes one in which nothing is left.
func (f userFile) change(ctx context.Context, mode func(was fs.FileMode) fs.FileMode,
	change func(*clientcmdapi.Config)) error {
	unreadable := (*UnreadableError)(nil)
	err := f.caller.as(func() error {
		// A look without the lock first: a file that needs no change is not locked, and its directory need not be
		// writable.
		if _, differs, err := f.changed(change); err != nil || !differs && modeOf(f.path) == mode(modeOf(f.path)) {
			return err
		}
		unlock, err := lockKubeconfig(ctx, f.path, kubeconfigPatience)
		if err != nil {
			return err
		}
		k, _, err := f.changed(change) // read again: another program may have written before we had the lock
		if err == nil {
			err = writeUserKubeconfig(f.path, k, mode(modeOf(f.path)))
		}
		return errors.Join(err, unlock())
	})
	if err == nil || errors.As(err, &unreadable) {
		return err
	}
	return f.explain(err)
}

// check returns an error if the file cannot be written with the rights of the user who called sudo. A start finds that
// out before it makes anything.
func (f userFile) check(ctx context.Context) error {
	if f.caller == nil || host.StatError(filepath.Dir(f.path)) != nil {
		return nil
	}
	return f.explain(f.caller.as(func() error {
		if info, err := os.Stat(f.path); err == nil && int(info.Sys().(*syscall.Stat_t).Uid) != f.caller.uid {
			return &fs.PathError{Op: "write", Path: f.path, Err: fs.ErrPermission}
		}
		unlock, err := lockKubeconfig(ctx, f.path, kubeconfigPatience)
		if err == nil {
			err = unlock()
		}
		return err
	}))
}

// explain adds what to do if the user who called sudo may not use a file or directory, such as one that an earlier
// command made as root.
func (f userFile) explain(err error) error {
	if f.caller == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w: %s called sudo and may not use it. Run: sudo chown -R %[2]s: %s; or choose another file: sudo KUBECONFIG=FILE bonsai …",
		err, f.caller.name, filepath.Dir(f.path))
}

// modeOf returns the mode of a file, 0 if there is none.
func modeOf(path string) fs.FileMode {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Mode().Perm()
}

// changed returns the kubeconfig with change applied, and whether that differs from the file.
func (f userFile) changed(change func(*clientcmdapi.Config)) (k *clientcmdapi.Config, differs bool, err error) {
	if k, err = f.read(); err != nil {
		return nil, false, err
	}
	before, err := clientcmd.Write(*k)
	if err != nil {
		return nil, false, err
	}
	change(k)
	after, err := clientcmd.Write(*k)
	return k, !bytes.Equal(before, after), err
}
