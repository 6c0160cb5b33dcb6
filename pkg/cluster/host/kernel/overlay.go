package kernel

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// TryOverlay returns an error unless the kernel mounts an overlay whose directories are below dir, as a snapshotter
// does. The mount is in a mount namespace that goes with the try.
func TryOverlay(ctx context.Context, dir string) error {
	root, err := os.MkdirTemp(dir, ".bonsai-overlay-")
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		errs = append(errs, os.Mkdir(filepath.Join(root, name), 0o700))
	}
	if err = errors.Join(errs...); err == nil {
		cmd := exec.CommandContext(ctx, "mount", "-n", "-t", "overlay", "overlay", "-o",
			"lowerdir=lower,upperdir=upper,workdir=work", "merged")
		cmd.Dir = root
		// Unshareflags, unlike Cloneflags, makes the mounts private: the overlay does not show on the machine.
		cmd.SysProcAttr = &unix.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
		var out []byte
		if out, err = cmd.CombinedOutput(); err != nil && len(out) > 0 {
			err = errors.New(firstLine(out))
		}
	}
	return errors.Join(err, os.RemoveAll(root))
}
